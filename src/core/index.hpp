// Our counts and indices are signed; the standard containers take unsigned ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syslab {

// container[at(number)]; `number` is not negative.
constexpr std::size_t at(std::int64_t number) { return static_cast<std::size_t>(number); }

}  // namespace syslab
