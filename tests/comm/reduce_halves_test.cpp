// Sums of 16-bit numbers against core's own conversions, over all there are.
#include "comm/reduce.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/dtype.hpp"

namespace syslab::comm {
namespace {

// All 65,536 numbers of a 16-bit dtype, and every one of them once more beside each of a few others.
template <typename T>
void expect_halves_like_core(std::size_t ranks) {
  std::vector<T> every(65'536), result(65'536);
  for (std::size_t i = 0; i < every.size(); ++i) every[i].bits = static_cast<std::uint16_t>(i);
  for (const float other :
       {0.0F, -0.0F, 1.0F, -3.0e-7F, 1.7e-5F, 65'504.0F, 3.0e38F, -std::numeric_limits<float>::infinity()}) {
    const std::vector<T> others(every.size(), from_float<T>(other));
    std::vector<const void*> sources{every.data()};
    for (std::size_t rank = 1; rank < ranks; ++rank) sources.push_back(others.data());
    reduce_in_order(sources, result.data(), dtype_of<T>, 65'536, Reduction::sum);
    for (std::size_t i = 0; i < every.size(); ++i) {
      float sum = to_float(every[i]);
      for (std::size_t rank = 1; rank < ranks; ++rank) sum += to_float(others[i]);
      const T expected = ranks == 1 ? every[i] : from_float<T>(sum);
      const float is = to_float(result[i]), should = to_float(expected);
      ASSERT_TRUE(result[i].bits == expected.bits || (is != is && should != should))
          << to_string(dtype_of<T>) << " bits " << i << " and " << other << ": " << is << " is not " << should;
    }
  }
}

TEST(ReduceInOrder, AllHalvesAreReadAndRoundedAsCoreDoes) {
  for (const std::size_t ranks : {1, 2, 3, 5}) {
    expect_halves_like_core<f16>(ranks);
    expect_halves_like_core<bf16>(ranks);
  }
}

}  // namespace
}  // namespace syslab::comm
