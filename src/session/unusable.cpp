#include "session/unusable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "session/selection.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

// "usage: --mine me: 'libme.so' speaks ABI 99 …" without what the message begins with anyway.
std::string bare(std::string detail, const std::string& name) {
  for (const std::string& begin : {std::string("usage: "), std::string("check: "), "--mine " + name + ": "}) {
    if (detail.starts_with(begin)) detail.erase(0, begin.size());
  }
  return detail.substr(0, detail.find('\n'));
}

}  // namespace

void Usability::require(const runner::AttemptResult& result) {
  const plan::PlannedCase& planned = *result.planned;
  const auto mine = std::find_if(plan_.mine.begin(), plan_.mine.end(),
                                 [&](const Submitted& one) { return one.name == planned.implementation; });
  if (planned.task != plan::Task::law || mine == plan_.mine.end() || usable_.count(mine->name) != 0) return;
  const bool searched = std::any_of(result.records.begin(), result.records.end(), [](const worker::Record& record) {
    return std::holds_alternative<worker::CheckRecord>(record);
  });
  if (searched || result.status != Status::error) {
    usable_.insert(mine->name);
    return;
  }
  std::string why = bare(result.detail, mine->name);
  const Json facts = json_or_discarded(result.facts_json);
  const std::optional<Lack> lack =
      facts.is_object() ? claim_of(facts.value(worker::kLackAtStart, Json())) : std::nullopt;
  if (lack && worker::is_missing_module(*lack)) {
    why += fmt::format("; '{}' was asked, and SYSLAB_PYTHON names another interpreter", worker::python_interpreter());
  }
  throw Error(ErrorKind::usage, fmt::format("--mine {}={}: {}", mine->name, path_of(*mine), why));
}

}  // namespace syslab::cli
