// How far weights that ranks have trained are from those of one process, beside how far they may be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syslab::worker {

// How far weights may be from those of one process (`alone`, computed in two ways that are right and round
// differently), by parameter: eight times as far as the two are from one another, over that parameter or, where that is
// more, its share of all; and what rounding an fp32 number 16 times may do to each.
struct WeightBounds {
  double worst = 0;  // distance over bound, of the parameter where that is largest
  std::size_t parameter = 0;
};
WeightBounds compare_weights(std::span<const float> found, std::span<const float> alone,
                             std::span<const float> otherwise, std::span<const std::int64_t> elements);

}  // namespace syslab::worker
