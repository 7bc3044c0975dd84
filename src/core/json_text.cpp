#include "core/json_text.hpp"

#include <nlohmann/json.hpp>

namespace syslab {

std::string json_text(const Json& json) { return json.dump(); }

std::string repaired_json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json parse_json(std::string_view text) { return Json::parse(text); }

Json json_or_discarded(std::string_view text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

}  // namespace syslab
