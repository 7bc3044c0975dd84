#include "core/finding_kind.hpp"

#include <algorithm>

namespace syslab {

std::string_view to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::none:
      return "none";
    case FindingKind::wrong_value:
      return "wrong_value";
    case FindingKind::not_finite:
      return "not_finite";
    case FindingKind::unwritten:
      return "unwritten";
    case FindingKind::kept_state:
      return "kept_state";
    case FindingKind::input_changed:
      return "input_changed";
    case FindingKind::write_outside:
      return "write_outside";
    case FindingKind::read_outside:
      return "read_outside";
    case FindingKind::late_write:
      return "late_write";
    case FindingKind::crash:
      return "crash";
    case FindingKind::killed:
      return "killed";
    case FindingKind::hang:
      return "hang";
    case FindingKind::raised:
      return "raised";
    case FindingKind::unanswered:
      return "unanswered";
  }
  return "none";
}

std::optional<FindingKind> finding_kind_of(std::string_view word) {
  const auto found = std::ranges::find(kFindingKinds, word, [](FindingKind kind) { return to_string(kind); });
  return found == kFindingKinds.end() ? std::nullopt : std::optional(*found);
}

bool is_severe(FindingKind kind) {
  switch (kind) {
    case FindingKind::not_finite:
    case FindingKind::unwritten:
    case FindingKind::kept_state:
    case FindingKind::input_changed:
    case FindingKind::write_outside:
    case FindingKind::read_outside:
    case FindingKind::late_write:
    case FindingKind::crash:
    case FindingKind::killed:
    case FindingKind::hang:
      return true;
    case FindingKind::none:
    case FindingKind::wrong_value:
    case FindingKind::raised:
    case FindingKind::unanswered:
      return false;
  }
  return false;
}

}  // namespace syslab
