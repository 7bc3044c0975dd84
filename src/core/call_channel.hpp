// An implementation that lives in another process, seen as a function call: named tensors in, named tensors out.
//
// The workload's rooms wrap a channel as a rung (ops/attention/foreign.hpp) without knowing the worker's wire format;
// the lab provides the channel (worker/judged/foreign.hpp).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/tensor.hpp"
#include "core/text/units.hpp"
#include "core/value.hpp"

namespace syslab {

struct NamedInput {
  std::string_view name;
  ConstTensorView view;
};

struct NamedOutput {
  std::string_view name;
  TensorView view;
};

class CallChannel {
 public:
  virtual ~CallChannel() = default;

  // Runs `function` ("attention_forward") once. Returns the time measured by the implementation's own monotonic clock,
  // device-synchronised, without transport. Throws Error(check) when the implementation raised (its text is in the
  // message), Error(comm) when its process is gone, Error(oom) when it ran out of memory, Unsupported when it says it
  // cannot do this.
  virtual Nanoseconds call(std::string_view function, std::span<const NamedInput> inputs,
                           std::span<const NamedOutput> outputs, const Params& options) = 0;
};

}  // namespace syslab
