#include "verdict/gist.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/text/text.hpp"

namespace syslab::verdict {

std::string gist(const Finding& finding, const std::string& message) {
  if (!finding.cause.empty()) return finding.cause;
  const bool changed = finding.kind == FindingKind::input_changed && !finding.about.empty();
  return changed ? fmt::format("the call changed its input '{}'", finding.about) : first_line(message);
}

bool same_counterexample(const Finding& one, const Finding& other) {
  if (one.input.empty() || one.first_wrong.empty()) return false;
  return one.input == other.input && one.first_wrong == other.first_wrong;
}

std::string SameFindings::name_of(const std::string& implementation, const Finding& finding,
                                  const std::string& message) {
  const std::string own = gist(finding, message);
  auto known = std::ranges::find_if(known_, [&](const Named& one) {
    return one.implementation == implementation && (one.gist == own || same_counterexample(one.finding, finding));
  });
  if (known == known_.end()) known = known_.insert(known_.end(), {implementation, own, finding});
  return implementation + ": " + known->gist;
}

}  // namespace syslab::verdict
