// Values of a claim's file among words of ours. A stranger wrote them (core/text/quoted.hpp).
#pragma once

#include <string>

#include "core/text/json.hpp"
#include "core/text/quoted.hpp"
#include "core/value.hpp"

namespace syslab::claim {

// Text and lists in quotes, numbers and flags as they are.
std::string shown(const Json& value);

// "reads=“took {} ms”", "seq=128": in quotes where it is not one plain word.
std::string shown_axis(const std::string& axis, const Value& value);

// A case's title with such axes; `params`: JSON of the case's axes.
std::string shown_title(std::string title, const std::string& params);

}  // namespace syslab::claim
