#include "trials/collective_content.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "device/buffer.hpp"
#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "trials/kernels.hpp"

namespace syslab::parallel {
namespace {

struct Deviation {
  double worst = 0, largest = 0;
};

Deviation deviation_on_host(const float* found, std::int64_t elements, const CollectiveContent& content, double scale) {
  Deviation deviation;
  for (std::int64_t i = 0; i < elements; ++i) {
    const double wanted = scale * content.expected(i);
    const double off = std::abs(static_cast<double>(found[i]) - wanted);
    if (std::isnan(off)) return {off, 0};
    deviation = {std::max(deviation.worst, off), std::max(deviation.largest, wanted)};
  }
  return deviation;
}

Deviation deviation_on_gpu(const float* found, std::int64_t elements, const CollectiveContent& content, double scale,
                           device::Stream stream) {
  const device::CurrentDevice current(stream);
  std::uint64_t bits[2] = {};
  const device::Buffer there(sizeof bits, "collective: deviation", stream);
  device::fill_bytes(there.data(), 0, sizeof bits, stream);
  kernels::raise_deviation(found, elements, content, scale, there.as<std::uint64_t>(), stream);
  device::copy_now(bits, there.data(), sizeof bits, stream);
  return {std::bit_cast<double>(bits[0]), std::bit_cast<double>(bits[1])};
}

}  // namespace

void fill_brought(float* at, std::int64_t elements, const CollectiveContent& content, float scale,
                  device::Stream stream) {
  if (stream.kind == device::Kind::cuda) {
    const device::CurrentDevice current(stream);
    return kernels::fill_brought(at, elements, content, scale, stream);
  }
  for (std::int64_t i = 0; i < elements; ++i) at[i] = scale * static_cast<float>(content.brought(i));
}

double relative_error(const float* found, std::int64_t elements, const CollectiveContent& content, double scale,
                      device::Stream stream) {
  const auto [worst, largest] = stream.kind == device::Kind::cuda
                                    ? deviation_on_gpu(found, elements, content, scale, stream)
                                    : deviation_on_host(found, elements, content, scale);
  if (std::isnan(worst)) return std::numeric_limits<double>::quiet_NaN();
  return worst == 0 ? 0 : largest > 0 ? worst / largest : std::numeric_limits<double>::infinity();
}

}  // namespace syslab::parallel
