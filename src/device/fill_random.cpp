#include "device/fill_random.hpp"

#include "device/cuda/kernels.hpp"
#include "device/cuda/launch.hpp"
#include "device/queue.hpp"

namespace syslab::device {

void fill_random(const TensorView& out, const RandomStream& random, Distribution distribution, float scale,
                 std::uint64_t first, Stream stream) {
  expect_plain(stream, "fill_random");
  if (stream.kind == Kind::cpu) return fill(out, random, distribution, scale, first);
  const CurrentDevice current(stream);
  kernels::fill_random(out, random.key(), distribution, scale, first, stream);
}

}  // namespace syslab::device
