// Counts and numbers are signed here, the standard library's containers take an unsigned one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syslab {

// container[at(number)]; `number` is not negative.
constexpr std::size_t at(std::int64_t number) { return static_cast<std::size_t>(number); }

}  // namespace syslab
