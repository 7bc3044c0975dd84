// What an implementation is to its experiment. Stored with each planned case, so that tables and figures choose by role
// and a new rung appears in them by itself.
#pragma once

#include <string_view>

namespace syslab {

enum class Role {
  ours,           // what the experiment is about, and a user might run; most rungs
  reference,      // the oracle that others are checked against
  gpu_reference,  // double precision on a GPU, for sizes that the reference cannot reach; checked like any other
  naive,          // the plain form that `vs_naive` divides by
  literal,        // the formula an operation at a time, every intermediate kept, as a framework's eager mode does
  intermediate,   // a step between naive and ours, there to show what it brings: timed, never the answer
  peer,           // somebody else's, what users would pick instead
  predicted,      // arithmetic alone: nothing of its own runs
  sharded,        // divides among ranks what the others do in one process
};

constexpr bool is_oracle(Role role) { return role == Role::reference || role == Role::gpu_reference; }

// "gpu_reference", as stored; empty for `ours`.
constexpr std::string_view to_string(Role role) {
  switch (role) {
    case Role::ours:
      return "";
    case Role::reference:
      return "reference";
    case Role::gpu_reference:
      return "gpu_reference";
    case Role::naive:
      return "naive";
    case Role::literal:
      return "literal";
    case Role::intermediate:
      return "intermediate";
    case Role::peer:
      return "peer";
    case Role::predicted:
      return "predicted";
    case Role::sharded:
      return "sharded";
  }
  return "";
}

}  // namespace syslab
