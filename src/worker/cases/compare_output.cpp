#include "worker/cases/compare_output.hpp"

#include <algorithm>

#include "device/buffer.hpp"
#include "device/memory.hpp"

namespace syslab::worker {

namespace {

check::Comparison compare_on_host(const TensorView& output, std::span<const double> value,
                                  std::span<const double> tolerance, device::Stream stream) {
  if (stream.kind == device::Kind::cpu) return check::compare(output, value, tolerance);
  const std::size_t bytes = static_cast<std::size_t>(output.elements()) * size_of(output.dtype);
  const device::Buffer here(bytes, "an output");
  device::copy_now(here.data(), output.data, bytes, stream);
  return check::compare({here.data(), output.dtype, output.shape}, value, tolerance);
}

}  // namespace

check::Comparison compare_output(const TensorView& output, const Expected& expected, device::Stream stream) {
  if (expected.there.value != nullptr) return check::compare_there(output, expected.there, stream);
  return compare_on_host(output, expected.value, expected.tolerance, stream);
}

double unjudged_part(const TensorView& output, const Expected& expected, const check::Comparison& comparison,
                     device::Stream stream) {
  if (expected.own_tolerance.empty() || comparison.compared == 0) return 0;
  const check::Comparison own = compare_on_host(output, expected.value, expected.own_tolerance, stream);
  const auto pass = static_cast<double>(std::max<std::int64_t>(own.wrong - comparison.wrong, 0));
  return pass / static_cast<double>(comparison.compared);
}

}  // namespace syslab::worker
