// Tensors that hold one value in every element, and what can make them so.
#pragma once

#include <optional>
#include <string>

#include "property_tests/attention/likeness.hpp"
#include "property_tests/attention/trial.hpp"

namespace syslab::attention {

// "NaN in every element of out and lse: …", "nothing written to lse: …", "one value in every element of lse: all 16 are
// -inf; …": of wrong tensors that are so throughout. Of a value that was computed it names what can be nothing: by the
// number, by which of the other tensors are right, and by which gradients are 0. `other`: of another size, or null.
std::optional<Likeness> one_value_everywhere(const Trial& trial, const Trial* other, Pass pass);

}  // namespace syslab::attention
