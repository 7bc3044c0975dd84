// Whose fault it is when a rank among several cannot go on. A rank that fails takes the others with it, and what they
// say about it is no cause: whoever collects what all of them said looks for the first that blames itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace syslab {

// The numbers are the exit codes of a worker whose rank ended so (docs/worker-protocol.md).
enum class Fault {
  own = 70,          // its own work failed
  peer = 71,         // another rank failed, left or aborted
  late = 72,         // another rank did not come within the limit
  rendezvous = 73,   // the ranks did not find each other
  mismatch = 74,     // they disagree: a size, a plan, a version
  numeric = 75,      // a value that is no number, or no two ranks agree on
  environment = 76,  // a library, a driver or a permission is missing
};

std::string_view to_string(Fault fault);  // "own", "peer", "late", …
std::optional<Fault> fault_of_word(std::string_view word);
std::optional<Fault> fault_of_exit_code(int code);

// An Error(comm) that says whose fault it is. One that does not is the fault of the rank that throws it.
class RankError : public Error {
 public:
  RankError(Fault fault, const std::string& message, std::string call = {})
      : Error(ErrorKind::comm, message, std::move(call)), fault_(fault) {}

  Fault fault() const noexcept { return fault_; }

 private:
  Fault fault_;
};

}  // namespace syslab
