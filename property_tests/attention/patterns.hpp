// What the errors of one trial have in common, where no usual mistake explains them whole.
#pragma once

#include <optional>
#include <string>

#include "property_tests/attention/likeness.hpp"
#include "property_tests/attention/trial.hpp"

namespace syslab::attention {

// "a factor that is wrong or missing: …", "the last, partial tile of queries: …", "a wrong rescale …": the one pattern
// that the errors have; nothing where they have none, or several. `other`: of another size, which it must not
// contradict, or null.
std::optional<Likeness> pattern_of_errors(const Trial& trial, const Trial* other, Pass pass);

// "wrong rows 16..63 of every 64 of out": a part of each tile of rows, of the first wrong tensor, whatever the head.
std::optional<std::string> rows_of_every_tile(const Trial& trial);

}  // namespace syslab::attention
