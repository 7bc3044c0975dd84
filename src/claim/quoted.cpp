#include "claim/quoted.hpp"

#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"

namespace syslab::claim {

std::string shown(const Json& value) {
  if (value.is_string()) return in_quotes(value.get<std::string>());
  if (!value.is_array()) return json_text(value);
  std::string list;
  for (const Json& one : value) {
    list += (list.empty() ? "" : ", ") + (one.is_string() ? one.get<std::string>() : json_text(one));
  }
  return in_quotes(list);
}

std::string shown_axis(const std::string& axis, const Value& value) {
  const std::string text = syslab::to_string(value);
  return (is_plain(axis) ? axis : in_quotes(axis)) + "=" + (is_plain(text) ? text : in_quotes(text));
}

std::string shown_title(std::string title, const std::string& params) {
  for (const auto& [axis, value] : Params::from_json(parse_json(params))) {
    const std::string raw = axis + "=" + syslab::to_string(value), told = shown_axis(axis, value);
    if (const std::size_t at = title.find(raw); raw != told && at != std::string::npos)
      title.replace(at, raw.size(), told);
  }
  return title;
}

}  // namespace syslab::claim
