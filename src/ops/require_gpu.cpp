#include "ops/require_gpu.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "device/properties.hpp"
#include "device/stream.hpp"

namespace syslab::ops {

Gpu require_gpu(std::string_view operation, device::Stream stream) {
  const device::Place place = device::place_of(stream);
  if (place.kind != device::Kind::cuda) {
    throw Error(ErrorKind::usage, fmt::format("{} runs on a GPU; the stream it was given is the CPU's: give it a "
                                              "stream of the GPU that its tensors lie on",
                                              operation));
  }
  thread_local Gpu known{.place = {device::Kind::cuda, -1}};
  if (known.place != place) {
    const device::DeviceProperties properties = device::properties(place);
    known = {place, properties.sm, properties.multiprocessors, static_cast<int>(properties.shared_bytes_per_block)};
  }
  if (known.sm < kMinimumSm) {
    throw Error(ErrorKind::device,
                fmt::format("{} needs a GPU of compute capability {}.{} or later; GPU {} has {}.{}: "
                            "use another GPU, or a rung for the CPU",
                            operation, kMinimumSm / 10, kMinimumSm % 10, place.index, known.sm / 10, known.sm % 10));
  }
  return known;
}

}  // namespace syslab::ops
