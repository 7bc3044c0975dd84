#include "worker/compare_output.hpp"

#include "device/buffer.hpp"
#include "device/memory.hpp"

namespace syslab::worker {

check::Comparison compare_output(const TensorView& output, const Expected& expected, device::Stream stream) {
  if (expected.there.value != nullptr) return check::compare_there(output, expected.there, stream);
  if (stream.kind == device::Kind::cpu) return check::compare(output, expected.value, expected.tolerance);
  const std::size_t bytes = static_cast<std::size_t>(output.elements()) * size_of(output.dtype);
  const device::Buffer here(bytes, "an output");
  device::copy_now(here.data(), output.data, bytes, stream);
  return check::compare({here.data(), output.dtype, output.shape}, expected.value, expected.tolerance);
}

}  // namespace syslab::worker
