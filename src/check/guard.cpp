// How the patterns are chosen. Arithmetic answers an invalid operation with the default NaN (quiet, no payload; on x86
// negative), hands on the payload of a NaN operand and makes a signalling NaN quiet. So:
//   poison   a positive signalling NaN with a fixed payload: copied it stays what it is, and nothing that is computed,
//            not even from an output that was read before it was written, is this word. A second one of the kind tells
//            who writes the first.
//   guards   negative quiet NaNs with a payload that depends on the position and is never zero: reading one spoils the
//            result, writing one shows, and so does copying one guard over another.
#include "check/guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/memory.hpp"
#include "device/pattern.hpp"

namespace syslab::check {
namespace {

// Wide enough for a tile's row of stores past the end to land in it, and a multiple of the buffer's alignment so that
// the first element keeps that alignment.
constexpr std::int64_t kGuardBytes = 4096;
static_assert(kGuardBytes % static_cast<std::int64_t>(device::kAlignment) == 0);

struct Pattern {
  std::uint64_t poison, second;
  std::uint64_t guard;    // sign, exponent and quiet bit
  std::uint64_t payload;  // largest payload below the quiet bit
};

constexpr Pattern pattern_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {0x7ff0'5359'534c'4142, 0x7ff0'4c41'4253'5953, 0xfff8'0000'0000'0000, 0x0007'ffff'ffff'ffff};
    case DType::f32:
      return {0x7f93'594c, 0x7fa1'4253, 0xffc0'0000, 0x003f'ffff};
    case DType::f16:
      return {0x7d59, 0x7ca6, 0xfe00, 0x01ff};
    case DType::bf16:
      return {0x7f99, 0x7fa6, 0xffc0, 0x003f};
  }
  return {};
}

device::Pattern guards_of(DType dtype) { return {pattern_of(dtype).guard, pattern_of(dtype).payload}; }
std::uint64_t guard_at(std::int64_t position, DType dtype) { return device::word_of(guards_of(dtype), position); }

// Little-endian: the low bytes of `bits` are the element. Every host that CUDA knows is.
void store_bits(std::byte* where, std::uint64_t bits, DType dtype) { std::memcpy(where, &bits, size_of(dtype)); }

std::uint64_t load_bits(const void* where, DType dtype) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, where, size_of(dtype));
  return bits;
}

// Calls visit(offset in elements) for each element of the tensor.
template <typename Visit>
void for_each_element(const Shape& shape, const Strides& strides, const Visit& visit) {
  const std::int64_t count = shape.elements();
  if (count == 0) return;
  const int last = shape.rank() - 1;
  const std::int64_t row = last < 0 ? 1 : shape[last], step = last < 0 ? 1 : strides[static_cast<std::size_t>(last)];
  for (std::int64_t done = 0; done < count; done += row) {
    std::int64_t rest = done / row, offset = 0;
    for (int dim = last - 1; dim >= 0; --dim) {
      offset += rest % shape[dim] * strides[static_cast<std::size_t>(dim)];
      rest /= shape[dim];
    }
    for (std::int64_t i = 0; i < row; ++i) visit(offset + i * step);
  }
}

// Which of `extent` elements belong to the tensor; empty: all of them.
std::vector<bool> owned_elements(const Shape& shape, const Strides& strides, std::int64_t extent) {
  if (extent == shape.elements()) return {};
  std::vector<bool> owned(static_cast<std::size_t>(extent), false);
  for_each_element(shape, strides, [&](std::int64_t offset) { owned[static_cast<std::size_t>(offset)] = true; });
  return owned;
}

}  // namespace

std::uint64_t poison_of(DType dtype, Poison which) {
  return which == Poison::first ? pattern_of(dtype).poison : pattern_of(dtype).second;
}

bool is_poison(const void* pointer, DType dtype) { return load_bits(pointer, dtype) == poison_of(dtype); }

bool is_made_of_poison(const void* pointer, DType dtype) {
  const std::uint64_t guard = pattern_of(dtype).guard, sign = std::uint64_t{1} << (8 * size_of(dtype) - 1);
  const std::uint64_t quiet = guard & ~sign & ~device::exponent_bits(dtype);
  return (load_bits(pointer, dtype) & ~sign) == (poison_of(dtype) | quiet);
}

GuardedTensor::GuardedTensor(const TensorSpec& spec, const Strides& strides) : spec_(spec), strides_(strides) {
  for (int dim = 0; dim < spec.shape.rank(); ++dim) {
    if (strides[static_cast<std::size_t>(dim)] < 0) {
      throw Error(ErrorKind::usage, fmt::format("guarded tensor '{}': stride {} of dimension {} is negative", spec.name,
                                                strides[static_cast<std::size_t>(dim)], dim));
    }
  }
  take_memory();
}

GuardedTensor::GuardedTensor(const TensorSpec& spec, device::Stream stream)
    : spec_(spec), strides_(contiguous_strides(spec.shape)), stream_(stream) {
  take_memory();
}

void GuardedTensor::take_memory() {
  const auto bytes = extent_elements(spec_.shape, strides_) * static_cast<std::int64_t>(size_of(spec_.dtype));
  buffer_ = device::Buffer(static_cast<std::size_t>(bytes + 2 * kGuardBytes), spec_.name, stream_,
                           device::MemoryCategory::output);
  poison();
}

std::size_t GuardedTensor::offset() const { return static_cast<std::size_t>(kGuardBytes); }

TensorView GuardedTensor::view() const { return {first(), spec_.dtype, spec_.shape, strides_}; }

void GuardedTensor::poison(Poison which) {
  const std::size_t bytes = size_of(spec_.dtype);
  const auto width = static_cast<std::int64_t>(bytes);
  const std::int64_t margin = kGuardBytes / width;
  const std::int64_t extent = extent_elements(spec_.shape, strides_);
  if (on_gpu() || extent == spec_.shape.elements()) {
    const device::Pattern guards = guards_of(spec_.dtype);
    device::fill_pattern(memory(), guards, bytes, -margin, margin, stream_);
    device::fill_pattern(first(), {poison_of(spec_.dtype, which)}, bytes, 0, extent, stream_);
    device::fill_pattern(first() + extent * width, guards, bytes, extent, margin, stream_);
    return;
  }
  for (std::int64_t i = -margin; i < extent + margin; ++i) {
    store_bits(first() + i * width, guard_at(i, spec_.dtype), spec_.dtype);
  }
  for_each_element(spec_.shape, strides_, [&](std::int64_t offset) {
    store_bits(first() + offset * width, poison_of(spec_.dtype, which), spec_.dtype);
  });
}

std::int64_t GuardedTensor::unwritten() const {
  const auto width = static_cast<std::int64_t>(size_of(spec_.dtype));
  const std::int64_t extent = extent_elements(spec_.shape, strides_);
  if (on_gpu() || extent == spec_.shape.elements()) {
    return extent -
           device::count_differences(first(), {poison_of(spec_.dtype)}, size_of(spec_.dtype), 0, extent, stream_).words;
  }
  std::int64_t count = 0;
  for_each_element(spec_.shape, strides_,
                   [&](std::int64_t offset) { count += is_poison(first() + offset * width, spec_.dtype) ? 1 : 0; });
  return count;
}

std::int64_t GuardedTensor::nans() const {
  if (on_gpu() || extent_elements(spec_.shape, strides_) == spec_.shape.elements()) {
    return device::count_nans(first(), spec_.dtype, spec_.shape.elements(), stream_);
  }
  const std::uint64_t exponent = device::exponent_bits(spec_.dtype);
  const auto width = static_cast<std::int64_t>(size_of(spec_.dtype));
  const std::uint64_t magnitude = exponent | (exponent - 1);  // all bits but the sign and those above it
  std::int64_t count = 0;
  for_each_element(spec_.shape, strides_, [&](std::int64_t offset) {
    count += (load_bits(first() + offset * width, spec_.dtype) & magnitude) > exponent ? 1 : 0;
  });
  return count;
}

std::optional<std::string> GuardedTensor::violation() const {
  const auto width = static_cast<std::int64_t>(size_of(spec_.dtype));
  const std::int64_t margin = kGuardBytes / width;
  const std::int64_t extent = extent_elements(spec_.shape, strides_);
  const std::vector<bool> owned = on_gpu() ? std::vector<bool>() : owned_elements(spec_.shape, strides_, extent);
  // Where the tensor begins and ends within its guards. Those of a GPU's tensor are copied to the host first.
  const std::byte *begin = first(), *end = first() + extent * width;
  std::vector<std::byte> brought;
  if (on_gpu()) {
    brought.resize(2 * kGuardBytes);
    device::copy(brought.data(), memory(), kGuardBytes, stream_);
    device::copy_now(brought.data() + kGuardBytes, end, kGuardBytes, stream_);
    begin = end = brought.data() + kGuardBytes;
  }

  // For each zone, the bytes changed and the changed place nearest to the tensor.
  struct Zone {
    std::int64_t bytes = 0, nearest = 0;
  } before, gaps, after;
  const auto look = [&](std::int64_t i, Zone& zone, const std::byte* at) {
    const std::uint64_t wanted = guard_at(i, spec_.dtype), found = load_bits(at, spec_.dtype);
    for (std::int64_t byte = 0; wanted != found && byte < width; ++byte) {
      if (((wanted ^ found) >> (8 * byte) & 0xffU) == 0) continue;
      if (zone.bytes++ == 0 || i < 0) zone.nearest = i * width + byte;
    }
  };
  for (std::int64_t i = -margin; i < 0; ++i) look(i, before, begin + i * width);
  for (std::int64_t i = 0; i < extent && !owned.empty(); ++i) {
    if (!owned[static_cast<std::size_t>(i)]) look(i, gaps, first() + i * width);
  }
  for (std::int64_t i = extent; i < extent + margin; ++i) look(i, after, end + (i - extent) * width);
  std::string text;
  const auto tell = [&](const Zone& zone, std::string_view where, std::int64_t origin) {
    if (zone.bytes == 0) return;
    text += fmt::format("{}{} bytes written {} (at {:+})", text.empty() ? "" : ", ", zone.bytes, where,
                        zone.nearest - origin);
  };
  tell(before, "before the first element", 0);
  tell(gaps, "in the gaps between rows", 0);
  tell(after, "after the last element", extent * width);
  if (text.empty()) return std::nullopt;
  return spec_.name + ": " + text;
}

}  // namespace syslab::check
