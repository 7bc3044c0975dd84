// Which rank is at fault when one of several cannot go on. A failing rank takes the others with it, and their errors
// are only consequences: the collector of all errors looks for the first rank that blames itself.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace syslab {

// How long a rank waits for another where nothing else is said.
inline constexpr std::chrono::milliseconds kLimitOfWaits{60'000};

// The values are the exit codes of the rank's worker (docs/worker-wire.md).
enum class Fault {
  own = 70,          // its own work failed
  peer = 71,         // another rank failed, left or aborted
  late = 72,         // another rank did not arrive within the limit
  rendezvous = 73,   // the ranks did not find each other
  mismatch = 74,     // they disagree: a size, a plan, a version
  numeric = 75,      // a value is not a number, or ranks disagree about it
  environment = 76,  // a library, a driver or a permission is missing
  awaited = 77,      // others waited for this rank in vain: it is slow, or they are wrong about it
};

std::string_view to_string(Fault fault);  // "own", "peer", "late", …
std::optional<Fault> fault_of_word(std::string_view word);
std::optional<Fault> fault_of_exit_code(int code);

// An Error(comm) that names the rank at fault. Any other error is the fault of the rank that throws it.
class RankError : public Error {
 public:
  RankError(Fault fault, const std::string& message, std::string call = {})
      : Error(ErrorKind::comm, message, std::move(call)), fault_(fault) {}

  Fault fault() const noexcept { return fault_; }

 private:
  Fault fault_;
};

}  // namespace syslab
