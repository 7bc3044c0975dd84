// Sums over ranks on a GPU: the host's bits, whatever the dtype, the number of ranks, the length and where it lies.
#include <cmath>
#include <cstring>

#include "comm/kernels.hpp"
#include "comm/reduce.hpp"
#include "device/memory.hpp"
#include "tests/device/gpu_fixture.hpp"

namespace syslab::comm {
namespace {

using device::Buffer;

// Of many magnitudes, so that another order of summing, or another rounding, shows.
template <typename T>
T drawn(std::uint32_t bits) {
  const double number = std::ldexp(static_cast<std::int32_t>(bits), static_cast<int>(bits % 16) - 40);
  if constexpr (std::is_same_v<T, double>) {
    return number;
  } else {
    return from_float<T>(static_cast<float>(number));
  }
}

class GpuSum : public device::GpuTest {
 protected:
  // `ranks` buffers of `count` random elements that begin `offset` elements behind an aligned address.
  template <typename T>
  void expect_the_hosts_bits(int ranks, std::int64_t count, std::int64_t offset) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks, " << count << " elements from " << offset);
    const auto room = static_cast<std::size_t>(count + offset);
    std::vector<std::vector<T>> here(static_cast<std::size_t>(ranks), std::vector<T>(room));
    std::vector<Buffer> there;
    std::vector<const void*> sources, host_sources;
    std::uint32_t bits = 12345;
    for (std::vector<T>& one : here) {
      for (T& value : one) {
        bits = bits * 1664525 + 1013904223;
        value = drawn<T>(bits);
      }
      there.push_back(to_gpu(one));
      sources.push_back(there.back().template as<T>() + offset);
      host_sources.push_back(one.data() + offset);
    }
    std::vector<T> expected(static_cast<std::size_t>(count));
    reduce_in_order(host_sources, expected.data(), dtype_of<T>, count, Reduction::sum);
    // In place of the last source, as a rank's own piece is.
    T* const to = there.back().template as<T>() + offset;
    kernels::sum_in_order(sources, to, dtype_of<T>, count, stream);
    std::vector<T> found(expected.size());
    device::copy_now(found.data(), to, found.size() * sizeof(T), stream);
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(T)), 0);
  }
  template <typename T>
  void expect_for_all_shapes() {
    for (const int ranks : {2, 3, 8}) {
      for (const std::int64_t count : {1, 7, 1024, 100'003}) {
        expect_the_hosts_bits<T>(ranks, count, 0);
        expect_the_hosts_bits<T>(ranks, count, 3);
      }
    }
  }
};

TEST_F(GpuSum, HasTheHostsBitsInFp32) { expect_for_all_shapes<float>(); }
TEST_F(GpuSum, HasTheHostsBitsInFp64) { expect_for_all_shapes<double>(); }
TEST_F(GpuSum, HasTheHostsBitsInBf16) { expect_for_all_shapes<bf16>(); }
TEST_F(GpuSum, HasTheHostsBitsInFp16) { expect_for_all_shapes<f16>(); }

}  // namespace
}  // namespace syslab::comm
