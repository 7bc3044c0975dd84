#include "contract/finding.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace syslab {

void put(Json& object, const Finding& finding) {
  if (finding.kind != FindingKind::none) object["finding"] = to_string(finding.kind);
  if (finding.promised) object["promised"] = true;
  if (finding.seldom) object["seldom"] = true;
  if (finding.small) object["small"] = true;
  const std::pair<const char*, const std::string&> texts[] = {{"about", finding.about},
                                                              {"cause", finding.cause},
                                                              {"input", finding.input},
                                                              {"first_wrong", finding.first_wrong},
                                                              {"never_drawn", finding.never_drawn}};
  for (const auto& [name, text] : texts) {
    if (!text.empty()) object[name] = text;
  }
}

}  // namespace syslab
