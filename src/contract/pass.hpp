// Which pass of an operator, a layer or a step is meant.
#pragma once

#include <span>
#include <string_view>

#include "core/value.hpp"

namespace syslab {

// `both`: the forward pass and then the backward pass on what it left. Functions that take one pass at a time say so
// and never receive `both`; one_by_one() splits it.
enum class Pass { forward, backward, both };

std::string_view to_string(Pass pass);  // "forward", "backward", "both"
// Error(usage) listing the valid names for any other text.
Pass parse_pass(std::string_view text);
// The value of the axis "pass". Error(usage) as parse_pass().
Pass pass_from(const Params& params);

// {forward}, {backward}, or the two in the order in which they run.
std::span<const Pass> one_by_one(Pass pass);

}  // namespace syslab
