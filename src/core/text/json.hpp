// JSON is nlohmann's: keys sorted, so dump() is canonical for equal values. Headers that only mention Json include this
// forward declaration; a .cpp that builds or reads one includes <nlohmann/json.hpp>.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace syslab {

using Json = nlohmann::json;

}  // namespace syslab
