// The parts of an operator's rung: RungInfo (contract/rung.hpp), its two passes, and the workspace of a call.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "contract/pass.hpp"
#include "contract/rung.hpp"
#include "core/text/units.hpp"

namespace syslab::ops {

// Scratch memory a kernel may use during one call. Empty: the kernel allocates and frees its own.
struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// Of an operator with a forward and a backward pass, which each function here takes one at a time.
template <typename Problem, typename ForwardArgs, typename BackwardArgs>
struct OperatorRung : RungInfo {
  // Why this rung cannot take the problem in this pass; nothing if it can.
  std::function<std::optional<std::string>(const Problem&, Pass)> supports;
  std::function<std::size_t(const Problem&, Pass)> workspace_bytes = [](const Problem&, Pass) -> std::size_t {
    return 0;
  };
  // Preconditions: validate() passed, supports() returned nothing. Work is queued on the stream without waiting; with a
  // workspace of the required size, a rung allocates nothing. On the CPU the work is done on return.
  std::function<void(const Problem&, const ForwardArgs&, Workspace, device::Stream)> forward;
  std::function<void(const Problem&, const BackwardArgs&, Workspace, device::Stream)> backward;
};

// The oracle that a ladder begins with, without its entry points.
template <typename Rung>
Rung reference(std::string teaches = "the formulas in double precision: what the others must equal") {
  Rung rung;
  rung.name = "reference";
  rung.role = Role::reference;
  rung.teaches = std::move(teaches);
  rung.dtypes = {DType::f64};
  return rung;
}

}  // namespace syslab::ops
