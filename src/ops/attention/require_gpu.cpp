#include "ops/attention/require_gpu.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "device/properties.hpp"
#include "device/stream.hpp"

namespace syslab::attention {

Gpu require_gpu(std::string_view operation, device::Stream stream, int minimum_sm) {
  const device::Place place = device::place_of(stream);
  if (place.kind != device::Kind::cuda) {
    throw Error(ErrorKind::usage, fmt::format("{} runs on a GPU; the stream it was given is the CPU's", operation));
  }
  thread_local Gpu known{.place = {device::Kind::cuda, -1}};
  if (known.place != place) {
    const device::DeviceProperties properties = device::properties(place);
    known = {place, properties.sm, properties.multiprocessors, static_cast<int>(properties.shared_bytes_per_block)};
  }
  if (known.sm < minimum_sm) {
    throw Error(ErrorKind::device,
                fmt::format("{} needs a GPU of compute capability {}.{} or later; GPU {} has {}.{}: "
                            "use rung naive_cuda",
                            operation, minimum_sm / 10, minimum_sm % 10, place.index, known.sm / 10, known.sm % 10));
  }
  return known;
}

}  // namespace syslab::attention
