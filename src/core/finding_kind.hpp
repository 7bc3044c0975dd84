// What kind of fault a law has met: a fact that travels as a field, from where it is seen to the verdict.
//
//   throw FoundFault(ErrorKind::comm, FindingKind::hang, "the worker 'me' was still running forward after 60 s");
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/lack.hpp"

namespace syslab {

enum class FindingKind {
  none,           // nothing was found, or nobody knows what
  wrong_value,    // an element beyond its bound
  not_finite,     // NaN or infinity where a number is expected
  unwritten,      // an element that no call has written
  kept_state,     // an answer that depends on earlier calls, or on chance
  input_changed,  // a call wrote over its input
  write_outside,  // … outside its outputs
  read_outside,   // it read past the end of a tensor
  late_write,     // it wrote an output after it had returned
  crash,          // the process ended in a call
  killed,         // … by SIGKILL or SIGTERM: by itself, or by the kernel when memory runs out
  hang,           // a call did not return in its time
  raised,         // an exception or an error status instead of an answer
  unanswered,     // it could not be asked: no memory, no process
};

inline constexpr std::array kFindingKinds{
    FindingKind::none,       FindingKind::wrong_value,   FindingKind::not_finite,    FindingKind::unwritten,
    FindingKind::kept_state, FindingKind::input_changed, FindingKind::write_outside, FindingKind::read_outside,
    FindingKind::late_write, FindingKind::crash,         FindingKind::killed,        FindingKind::hang,
    FindingKind::raised,     FindingKind::unanswered};

std::string_view to_string(FindingKind kind);  // "write_outside", as on the wire and in the store
std::optional<FindingKind> finding_kind_of(std::string_view word);

// Faults that no tolerance excuses: they fail a check wherever the input is one that is promised, whichever law met
// them.
bool is_severe(FindingKind kind);

// What else is known of a fault, for Finding (contract/finding.hpp).
struct FaultDetails {
  std::string about, cause;
};

// An Error of a known kind of fault. `lacks`: what the implementation says that its Python does not have.
class FoundFault : public Error {
 public:
  FoundFault(ErrorKind error, FindingKind kind, const std::string& message, std::string call = {},
             std::optional<Lack> lacks = {}, FaultDetails details = {})
      : Error(error, message, std::move(call)),
        finding_(kind),
        lacks_(std::move(lacks)),
        details_(std::move(details)) {}

  FindingKind finding() const noexcept { return finding_; }
  const std::optional<Lack>& lacks() const noexcept { return lacks_; }
  const FaultDetails& details() const noexcept { return details_; }

 private:
  FindingKind finding_;
  std::optional<Lack> lacks_;
  FaultDetails details_;
};

}  // namespace syslab
