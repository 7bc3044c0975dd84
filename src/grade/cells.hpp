// Cells of a table that no query gave.
#pragma once

#include <string>
#include <utility>

#include "store/store.hpp"

namespace syslab::grade {

inline store::Cell text_cell(std::string text) { return {.type = store::Cell::Type::text, .text = std::move(text)}; }

inline store::Cell number_cell(double number) { return {.type = store::Cell::Type::real, .real = number}; }

}  // namespace syslab::grade
