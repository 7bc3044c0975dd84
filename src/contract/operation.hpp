// One operation as data: inputs, outputs, how to call it, and the expected result. An operator's folder makes one from
// a problem and a rung, so that all experiments time the same thing; the lab checks and measures it
// (worker::run_operator_case) and knows nothing else about the operator.
//
//   Operation made = attention::operation(problem, Pass::forward, rung, seed);
//   worker::run_operator_case(context, made);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "contract/expected.hpp"
#include "core/tensor.hpp"
#include "core/text/units.hpp"
#include "device/device.hpp"

namespace syslab {

// Views in the order of Operation::inputs and outputs, contiguous. Outputs overlap nothing.
using Inputs = std::vector<ConstTensorView>;
using Outputs = std::vector<TensorView>;
// One call. On a GPU it queues its work on the stream and returns without waiting; on the CPU the stream is ignored.
// Throws Error if the kernel refuses the input.
using OperationCall = std::function<void(const Inputs&, const Outputs&, device::Stream)>;

// What a trusted computation finds for consecutive elements of one output, row-major.
struct Glimpse {
  std::size_t output = 0;
  std::int64_t first = 0;
  std::vector<double> values;
};

struct Operation {
  // Where the tensors live and where `call`, `naive` and `prepare` run.
  device::Kind device = device::Kind::cpu;
  // Names are unique. Inputs are filled with random numbers (normal, variance 1), except those in `prepared`.
  std::vector<TensorSpec> inputs, outputs;
  // Computes inputs from other inputs: called once for every new content, after the others were filled, with all inputs
  // writable. May be empty.
  std::function<void(std::vector<TensorView>& inputs, device::Stream)> prepare;
  // Names of inputs that `prepare` overwrites completely; they need not be filled first.
  std::vector<std::string> prepared;
  OperationCall call;
  // The oracle: one Expected per output, in double precision or better. Its inputs are in host memory, wherever the
  // operation runs.
  std::function<std::vector<Expected>(const Inputs&)> expect;
  // An oracle that takes less time: the same values, tolerances no wider than those of `expect`. What lies within them
  // is right; of what does not `expect` is asked. Nothing, or empty: there is none.
  std::function<std::vector<Expected>(const Inputs&)> expect_narrowly;
  // The oracle of integers that may tie, such as the place of a maximum: it has seen the outputs, and expects what they
  // have where that is equally right. Tensors are in host memory. Asked only of what `expect` finds wrong; empty where
  // nothing ties.
  std::function<std::vector<Expected>(const Inputs&, const Outputs&)> expect_ties;
  // The oracle on GPU tensors, for operations that run there; queues on the stream. If empty, the inputs are copied to
  // the host for `expect`.
  std::function<std::vector<Expected>(const Inputs&, device::Stream)> expect_there;
  // The naive kernel on the same tensors. A half-precision kernel's error may be at most twice its error. Empty: no
  // such comparison.
  OperationCall naive;
  // A look at what a timed call of somebody else's implementation left, at most as dear as a call: what a trusted
  // computation finds for elements that `random` chooses, some of every output, or all. It accuses nobody: where an
  // output is far from it, the oracle is asked. May read outputs. All tensors are in host memory, wherever the
  // operation runs. Empty: every timed call on the host is compared whole.
  std::function<std::vector<Glimpse>(const Inputs&, const Outputs&, std::uint64_t random)> glimpse;
  // The oracle of a part that holds this element of an output; empty where `expect` leaves none out.
  std::function<std::vector<Expected>(const Inputs&, std::size_t output, std::int64_t element)> expect_around;
  // Time of the last call by the implementation's own clock, if it runs in another process; empty for ours.
  std::function<Nanoseconds()> self_time;
  double flops = 0, bytes = 0;  // per call; 0: no rate is reported
};

}  // namespace syslab
