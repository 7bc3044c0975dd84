// A call that did what none may: it changed its inputs, wrote outside its outputs, or wrote them after it had returned.
// That is a wrong answer, and never an error of whoever called.
#pragma once

#include <string>
#include <utility>

#include "core/finding_kind.hpp"

namespace syslab {

class Misuse : public FoundFault {
 public:
  // `check`: the name under which the finding is stored, "call:changes_no_input". `about`: the tensor.
  Misuse(FindingKind kind, std::string check, const std::string& message, std::string about = {})
      : FoundFault(ErrorKind::check, kind, message, {}, {}, {.about = std::move(about)}), check_(std::move(check)) {}

  const std::string& check() const noexcept { return check_; }

 private:
  std::string check_;
};

inline constexpr const char* kChangesNoInput = "call:changes_no_input";
inline constexpr const char* kWritesOutputsAlone = "call:writes_outputs_alone";
inline constexpr const char* kEndsWhenItReturns = "call:ends_when_it_returns";

}  // namespace syslab
