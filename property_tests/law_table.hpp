// An operator's table of laws as lists show it, and bound to one rung. Templates, because each operator has its own
// Rung and its own kind of entry: they take anything with `id` and `statement`, `against_oracle` where an
// entry has it, and a function asked_by_handout(entry) where there is one.
//
//   constexpr Entry kEntries[] = {{"copy.equals_source", "every element arrives as it was", equals_source}};
//   std::vector<check::Law> laws(const Rung& rung) { return property::bound(kEntries, rung, search); }
//   std::vector<LawInfo> law_list() { return property::statements(kEntries); }
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check/law.hpp"
#include "contract/law.hpp"

namespace syslab::property {

template <typename Entries>
std::vector<LawInfo> statements(Entries&& entries) {
  std::vector<LawInfo> list;
  for (const auto& entry : entries) {
    LawInfo& shown = list.emplace_back(LawInfo{entry.id, entry.statement});
    if constexpr (requires { entry.against_oracle; }) shown.against_oracle = entry.against_oracle;
    if constexpr (requires { asked_by_handout(entry); }) shown.asked_by_handout = asked_by_handout(entry);
  }
  return list;
}

// `search(entry, rung, request)` asks the rung, which the laws keep a copy of. Entries must outlive the laws.
template <typename Entries, typename Rung, typename Search>
std::vector<check::Law> bound(Entries&& entries, const Rung& rung, Search search) {
  const auto kept = std::make_shared<const Rung>(rung);
  std::vector<check::Law> laws;
  for (const auto& entry : entries) {
    check::Law& law = laws.emplace_back(
        check::Law{entry.id, entry.statement,
                   [kept, search, &entry](const check::LawRequest& request) { return search(entry, *kept, request); }});
    if constexpr (requires { asked_by_handout(entry); }) law.asked_by_handout = asked_by_handout(entry);
  }
  return laws;
}

// What the search of a law returns that says nothing of this implementation: what it asks is not promised, say.
inline check::LawResult does_not_apply(std::string why) {
  check::LawResult result;
  result.applies = false;
  result.message = std::move(why);
  return result;
}

}  // namespace syslab::property
