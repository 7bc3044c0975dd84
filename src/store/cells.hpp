// Cells that no query gave: parameters of one, rows of a table that is made here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "store/store.hpp"

namespace syslab::store {

inline Cell text_cell(std::string text) { return {.type = Cell::Type::text, .text = std::move(text)}; }
inline Cell integer_cell(std::int64_t integer) { return {.type = Cell::Type::integer, .integer = integer}; }
inline Cell real_cell(double real) { return {.type = Cell::Type::real, .real = real}; }

}  // namespace syslab::store
