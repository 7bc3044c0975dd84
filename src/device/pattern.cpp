#include "device/pattern.hpp"

#include <array>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "device/buffer.hpp"
#include "device/cuda/kernels.hpp"
#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "device/queue.hpp"

namespace syslab::device {
namespace {

void require_width(std::size_t width) {
  if (width == 1 || width == 2 || width == 4 || width == 8) return;
  throw Error(ErrorKind::internal, "no words of " + std::to_string(width) + " bytes: 1, 2, 4 and 8 there are");
}

// Little-endian, like every host that CUDA supports: the low bytes of a word are the element.
std::uint64_t load(const std::byte* at, std::size_t width) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, width);
  return bits;
}

constexpr std::uint64_t low_bytes(std::size_t width) { return ~std::uint64_t{0} >> (64 - 8 * width); }

template <typename Word>
void fill_words(void* at, const Pattern& pattern, std::int64_t first_position, std::int64_t count) {
  auto* bytes = static_cast<std::byte*>(at);
  const auto same = static_cast<Word>(pattern.base);
  for (std::int64_t i = 0; i < count; ++i) {
    const Word word = pattern.payload == 0 ? same : static_cast<Word>(word_of(pattern, first_position + i));
    std::memcpy(bytes + static_cast<std::size_t>(i) * sizeof word, &word, sizeof word);
  }
}

// A loop without branches over words of one size is one that compilers vectorise.
template <typename Word>
std::int64_t count_nan_words(const void* at, std::uint64_t exponent, std::int64_t count) {
  constexpr Word kMagnitude = static_cast<Word>(~Word{0}) >> 1;
  const auto infinite = static_cast<Word>(exponent);
  const auto* bytes = static_cast<const std::byte*>(at);
  std::int64_t nans = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Word word = 0;
    std::memcpy(&word, bytes + static_cast<std::size_t>(i) * sizeof word, sizeof word);
    nans += static_cast<Word>(word & kMagnitude) > infinite ? 1 : 0;
  }
  return nans;
}

template <typename Word>
bool none_is(const std::byte* bytes, std::uint64_t pattern, std::int64_t count) {
  const auto same = static_cast<Word>(pattern);
  std::int64_t equal = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Word word = 0;
    std::memcpy(&word, bytes + static_cast<std::size_t>(i) * sizeof word, sizeof word);
    equal += word == same ? 1 : 0;
  }
  return equal == 0;
}

// What is nearly always so of poison behind a call: everything was written.
bool none_is(const std::byte* bytes, std::uint64_t pattern, std::size_t width, std::int64_t count) {
  switch (width) {
    case 1:
      return none_is<std::uint8_t>(bytes, pattern, count);
    case 2:
      return none_is<std::uint16_t>(bytes, pattern, count);
    case 4:
      return none_is<std::uint32_t>(bytes, pattern, count);
    default:
      return none_is<std::uint64_t>(bytes, pattern, count);
  }
}

// Runs `count(found)` on zeroed counters in GPU memory and returns what it left there.
template <std::size_t kCounters, typename Count>
std::array<std::uint64_t, kCounters> counted_on_gpu(Stream stream, const Count& count) {
  std::array<std::uint64_t, kCounters> found{};
  const Buffer counters(sizeof found, "counters", stream);
  fill_bytes(counters.data(), 0, sizeof found, stream);
  count(counters.as<std::uint64_t>());
  copy_now(found.data(), counters.data(), sizeof found, stream);
  return found;
}

}  // namespace

void fill_pattern(void* at, const Pattern& pattern, std::size_t width, std::int64_t first_position, std::int64_t count,
                  Stream stream) {
  require_width(width);
  expect_plain(stream, "fill_pattern");
  if (stream.kind == Kind::cuda) {
    const CurrentDevice current(stream);
    return kernels::fill_pattern(at, pattern, width, first_position, count, stream);
  }
  switch (width) {
    case 1:
      return fill_words<std::uint8_t>(at, pattern, first_position, count);
    case 2:
      return fill_words<std::uint16_t>(at, pattern, first_position, count);
    case 4:
      return fill_words<std::uint32_t>(at, pattern, first_position, count);
    default:
      return fill_words<std::uint64_t>(at, pattern, first_position, count);
  }
}

Differences count_differences(const void* at, const Pattern& pattern, std::size_t width, std::int64_t first_position,
                              std::int64_t count, Stream stream) {
  require_width(width);
  expect_plain(stream, "count_differences");
  Differences differences;
  if (stream.kind == Kind::cuda) {
    const CurrentDevice current(stream);
    const auto found = counted_on_gpu<3>(stream, [&](std::uint64_t* counters) {
      kernels::count_differences(at, pattern, width, first_position, count, counters, stream);
    });
    differences.words = static_cast<std::int64_t>(found[0]);
    if (differences.words > 0) {
      differences.first = static_cast<std::int64_t>(~found[1]);
      differences.last = static_cast<std::int64_t>(found[2] - 1);
    }
    return differences;
  }
  const auto* bytes = static_cast<const std::byte*>(at);
  if (count > 0 && pattern.payload == 0 && none_is(bytes, pattern.base, width, count)) {
    return {.words = count, .first = 0, .last = count - 1};
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t wanted = word_of(pattern, first_position + i) & low_bytes(width);
    if (load(bytes + static_cast<std::size_t>(i) * width, width) == wanted) continue;
    if (differences.words++ == 0) differences.first = i;
    differences.last = i;
  }
  return differences;
}

std::int64_t count_nans(const void* at, DType dtype, std::int64_t count, Stream stream) {
  const std::size_t width = size_of(dtype);
  const std::uint64_t exponent = exponent_bits(dtype);
  expect_plain(stream, "count_nans");
  if (stream.kind == Kind::cuda) {
    const CurrentDevice current(stream);
    const auto found = counted_on_gpu<1>(
        stream, [&](std::uint64_t* counters) { kernels::count_nans(at, width, exponent, count, counters, stream); });
    return static_cast<std::int64_t>(found[0]);
  }
  switch (width) {
    case 2:
      return count_nan_words<std::uint16_t>(at, exponent, count);
    case 4:
      return count_nan_words<std::uint32_t>(at, exponent, count);
    default:
      return count_nan_words<std::uint64_t>(at, exponent, count);
  }
}

std::int64_t first_with_nans(std::span<const Elements> tensors, Stream stream) {
  const auto index = [](std::size_t i) { return static_cast<std::int64_t>(i); };
  if (stream.kind == Kind::cpu) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (count_nans(tensors[i].at, tensors[i].dtype, tensors[i].count, stream) > 0) return index(i);
    }
    return -1;
  }
  if (tensors.empty()) return -1;
  expect_plain(stream, "first_with_nans");
  const CurrentDevice current(stream);
  std::vector<std::uint64_t> found(tensors.size());
  const std::size_t bytes = found.size() * sizeof(std::uint64_t);
  const Buffer counters(bytes, "counters", stream);
  fill_bytes(counters.data(), 0, bytes, stream);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Elements& each = tensors[i];
    kernels::count_nans(each.at, size_of(each.dtype), exponent_bits(each.dtype), each.count,
                        counters.as<std::uint64_t>() + i, stream);
  }
  copy_now(found.data(), counters.data(), bytes, stream);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] > 0) return index(i);
  }
  return -1;
}

}  // namespace syslab::device
