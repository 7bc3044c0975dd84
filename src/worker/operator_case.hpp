// The journey of a case that is one operator: inputs from the seed, outputs poisoned and guarded, check against the
// float64 reference, then measure on fresh inputs with randomly chosen timed samples verified.
//
// An experiment fills an OperatorCase and calls run_operator_case(); it writes no loop of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/compare.hpp"
#include "core/tensor.hpp"
#include "core/units.hpp"
#include "device/device.hpp"
#include "worker/case_context.hpp"

namespace syslab::worker {

struct InputSpec {
  TensorSpec tensor;
  Distribution distribution = Distribution::normal;
  float scale = 1.0F;
  bool prepared = false;  // `prepare` writes all of it: not filled
};

// Bound on |out − reference| for one element: absolute, from the operator's error analysis.
struct OutputSpec {
  TensorSpec tensor;
};

// Views of one set of inputs and outputs, in the order of the specs, and the order of work that calls join. On a GPU
// the views are of its memory; a call queues its work on the stream and does not wait.
struct Tensors {
  std::vector<ConstTensorView> inputs;
  std::vector<TensorView> outputs;
  device::Stream stream;
};

// What the oracle says about one output: on the host, or (of `expect_there`) in the GPU's memory.
struct Expectation {
  std::vector<double> value;      // row-major over the output's shape; NaN where `checked` leaves it out
  std::vector<double> tolerance;  // the same length: derived bound for each element, or a single value for all
  double fraction = 1.0;          // share of elements computed; the rest hold NaN in `value`
  check::ExpectedThere there;     // instead of the vectors, where it has values
};

struct OperatorCase {
  device::Kind device = device::Kind::cpu;  // where the tensors lie and the calls run
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  // Inputs that need computing (backward wants O and L of a forward pass): called once per input set after the random
  // fill of those not marked `prepared`, with all inputs writable. May be empty.
  std::function<void(std::vector<TensorView>& inputs, device::Stream)> prepare;
  // One call of the implementation.
  std::function<void(const Tensors&)> call;
  // Float64 oracle of the same inputs: one Expectation per output. Its tensors lie on the host, wherever the case runs,
  // and it reads the inputs alone.
  std::function<std::vector<Expectation>(const Tensors&)> expect;
  // The oracle on the GPU's own tensors, queued on their stream; preferred where there is one. May be empty.
  std::function<std::vector<Expectation>(const Tensors&)> expect_there;
  // Worst error of the naive kernel in the same dtype on the same inputs, per output; half precision must stay within
  // twice that. Empty function: not asked.
  std::function<std::vector<double>(const Tensors&, const std::vector<Expectation>&)> naive_error;
  // Time of the last call by the implementation's own clock, for those in another process; empty for ours.
  std::function<Nanoseconds()> self_time;
  double flops = 0;  // per call; 0: no rate metric
  double bytes = 0;
};

// Emits check records "reference:<output>" and "samples:<output>", samples "time", metrics (time, its quantiles,
// tflops, gbps, worst errors, peak scratch memory) and facts. Throws CheckFailed, Unsupported, Error.
void run_operator_case(CaseContext& context, const OperatorCase& operator_case);

}  // namespace syslab::worker
