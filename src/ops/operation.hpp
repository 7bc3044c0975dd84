// One operation as data: what goes in, what comes out, how it is called and what must come out. An operator's folder
// makes one from a problem and a rung, so that every experiment that times it times the same thing; the lab's
// worker::operator_case_of() takes it from there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.hpp"
#include "core/units.hpp"
#include "core/value.hpp"
#include "device/device.hpp"

namespace syslab::ops {

// What the oracle says about one output.
struct Expected {
  std::vector<double> value;      // row-major over the output's shape; NaN where `fraction` leaves it out
  std::vector<double> tolerance;  // as long, or one for all
  double fraction = 1.0;          // share of elements computed
  // Of an oracle on the GPU instead, the vectors being empty: the same as doubles in its memory, which `owner` keeps.
  const double* value_there = nullptr;
  const double* tolerance_there = nullptr;
  std::int64_t tolerances_there = 0;  // as many as elements, or 1 for all
  std::shared_ptr<const void> owner;
};

// Views in the order of `inputs` and `outputs`.
using Inputs = std::vector<ConstTensorView>;
using Outputs = std::vector<TensorView>;

struct Operation {
  // Whose memory the tensors lie in and where `call`, `naive` and `prepare` run. Of a GPU they queue their work on the
  // stream and do not wait for it; on the CPU the stream is only a token.
  device::Kind device = device::Kind::cpu;
  std::vector<TensorSpec> inputs, outputs;
  // Inputs that must be computed from the others, after these were filled; may be empty.
  std::function<void(std::vector<TensorView>& inputs, device::Stream)> prepare;
  // Names of inputs that `prepare` writes whole: nobody needs to fill them first.
  std::vector<std::string> prepared;
  std::function<void(const Inputs&, const Outputs&, device::Stream)> call;
  // The oracle, one Expected an output. Its inputs lie in the host's memory, wherever the operation runs.
  std::function<std::vector<Expected>(const Inputs&)> expect;
  // The oracle on a GPU's own tensors, for operations that run there; queues on the stream. Empty: there is none, and
  // the inputs are copied to the host for `expect`.
  std::function<std::vector<Expected>(const Inputs&, device::Stream)> expect_there;
  // The naive kernel on the same tensors, where one in half precision is to be held against it; else empty.
  std::function<void(const Inputs&, const Outputs&, device::Stream)> naive;
  // Time of the last call by the implementation's own clock, for those in another process; empty for ours.
  std::function<Nanoseconds()> self_time;
  double flops = 0, bytes = 0;  // of one call
};

// A parameter that an operator reads from a case (`problem_from`), for experiments to turn into an axis.
struct ParamInfo {
  std::string name;
  std::vector<Value> values;  // by default
  std::string help;
  bool closed = false;  // takes no others than these and `also`
  std::vector<Value> also;
  // Words for another value in each hand-out, by its year: model=xl is xl25 or xl26.
  std::map<std::string, std::map<std::string, Value>> by_handout = {};
};

}  // namespace syslab::ops
