// The other end of a CallChannel: functions on named tensors, in the process that is called
// (worker/judged/serve_calls.hpp serves them).
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "core/call_channel.hpp"
#include "core/text/json.hpp"

namespace syslab {

class Callee {
 public:
  virtual ~Callee() = default;

  virtual Json domain() const = 0;  // what it promises to take; an object

  // What runs the call. All that needs no tensor's content is done before: inputs are written after this returns, and
  // the clock runs from then on. Throws as CallChannel::call says, here or in what is returned; the views live as long
  // as that.
  virtual std::function<void()> prepare(std::string_view function, std::span<const NamedInput> inputs,
                                        std::span<const NamedOutput> outputs, const Params& options) = 0;
};

}  // namespace syslab
