// A part of a divided state that one rank has: a range of the elements of a parameter, of its weights or of one of its
// moments. What flat ranges come to, and rows, and whole parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor.hpp"

namespace syslab::parallel {

enum class StatePlane { weight, first_moment, second_moment };
std::string_view to_string(StatePlane plane);

struct StatePiece {
  StatePlane plane = StatePlane::weight;
  std::string parameter;
  std::int64_t first = 0;  // of the parameter's elements, row-major
  TensorView values;       // contiguous, in memory of the stream's device
};

}  // namespace syslab::parallel
