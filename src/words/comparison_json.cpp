// A file of its own: tests link it with another text of everything (tests/words/scrambled.cpp).
#include <nlohmann/json.hpp>

#include "words/comparison_words.hpp"

namespace syslab::words {

using verdict::AboutSide;
using verdict::Judgement;

Json to_json(const Judgement& it) {
  Json json{{"verdict", stats::to_string(it.verdict)},
            {"reason", reason(it)},
            {"cause", verdict::to_string(it.reason.cause)},
            {"note", it.note},
            {"reason_code", stats::to_string(it.code)},
            {"failed_a", it.failed_a ? Json(syslab::to_string(*it.failed_a)) : Json()},
            {"failed_b", it.failed_b ? Json(syslab::to_string(*it.failed_b)) : Json()},
            {"warnings", stats::to_json(it.warnings)},
            {"delta", it.delta},
            {"launches", it.launches},
            {"blocks", it.blocks}};
  const bool in_turns = it.launches_of_side[0] == 0 && it.launches_of_side[1] == 0;
  json["launches_a"] = in_turns ? it.launches : it.launches_of_side[0];
  json["launches_b"] = in_turns ? it.launches : it.launches_of_side[1];
  for (const AboutSide& one : it.sides) {
    json[one.side == 'A' ? "about_a" : "about_b"] = one.says;
    json[one.side == 'A' ? "detail_a" : "detail_b"] = one.detail;
  }
  const auto put = [&](const char* name, const std::optional<double>& value) {
    json[name] = value ? Json(*value) : Json();
  };
  put("seconds_a", it.seconds_a);
  put("seconds_b", it.seconds_b);
  put("log_ratio", it.log_ratio);
  put("low", it.low);
  put("high", it.high);
  put("p_value", it.p_value);
  put("q_value", it.q_value);
  json["unit"] = it.quantity.unit;
  json["better"] = it.quantity.better == Better::larger ? "larger" : "smaller";
  if (it.quantity.is_rate()) {
    const auto rate = [](const std::optional<double>& seconds) { return seconds ? Json(1 / *seconds) : Json(); };
    json["rate_a"] = rate(it.seconds_a);
    json["rate_b"] = rate(it.seconds_b);
  }
  return json;
}

}  // namespace syslab::words
