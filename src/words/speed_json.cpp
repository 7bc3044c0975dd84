// A file of its own, as comparison_json.cpp is.
#include <nlohmann/json.hpp>

#include "words/speed_words.hpp"

namespace syslab::words {

Json to_json(const verdict::SpeedFinding& finding, std::span<const verdict::MeasuredSpeed> measured,
             const std::string& reason) {
  const auto speed_json = [](const verdict::Speed& speed) {
    return Json{{"times_as_fast", speed.factor},
                {"low", speed.low},
                {"high", speed.high},
                {"verdict", verdict::to_string(speed.verdict)}};
  };
  Json cases = Json::array();
  for (std::size_t i = 0; i < measured.size(); ++i) {
    Json one{{"case", measured[i].title}};
    if (finding.cases[i]) one.update(speed_json(*finding.cases[i]));
    if (!measured[i].failed.empty()) one["failed"] = measured[i].failed;
    cases.push_back(one);
  }
  return {{"verdict", verdict::to_string(finding.verdict)},
          {"reason", reason},
          {"cause", verdict::to_string(finding.cause)},
          {"cases", cases},
          {"geometric_mean", finding.mean ? speed_json(*finding.mean) : Json()}};
}

}  // namespace syslab::words
