#include "core/random.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "core/files/hash.hpp"
#include "core/random_bits.hpp"

namespace syslab {
namespace {

// Standard normal quantiles as integers; tools/make_normal_table.py says how they lie.
constexpr std::int32_t kNormalTable[] = {
#include "core/normal_table.inc"
};
static_assert(std::size(kNormalTable) == random_bits::kTableSize);

float normal_from_bits(std::uint32_t bits) { return random_bits::normal(bits, kNormalTable); }

float uniform_from_bits(std::uint32_t bits) { return random_bits::uniform(bits); }

std::array<std::uint32_t, 4> block_at(std::uint64_t key, std::uint64_t block) {
  std::uint32_t words[] = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0};
  random_bits::philox4x32(words, static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32));
  return {words[0], words[1], words[2], words[3]};
}

// A tensor's numbers are drawn in groups, the generator's blocks side by side: a compiler then works on several with
// one instruction.
constexpr int kSideBySide = 16;
constexpr std::int64_t kGroup = 4 * kSideBySide;

template <Distribution of>
[[gnu::always_inline]] inline void draw_group(std::uint64_t key, std::uint64_t group, float scale, float* out) {
  std::uint32_t words[4][kSideBySide];
  const std::uint64_t first = group * kSideBySide;
  for (int i = 0; i < kSideBySide; ++i) {
    const std::uint64_t block = first + static_cast<std::uint64_t>(i);
    words[0][i] = static_cast<std::uint32_t>(block);
    words[1][i] = static_cast<std::uint32_t>(block >> 32);
    words[2][i] = words[3][i] = 0;
  }
  random_bits::philox_rounds(
      static_cast<std::uint32_t>(key),
      static_cast<std::uint32_t>(key >> 32), [&words](std::uint32_t a, std::uint32_t b) __attribute__((always_inline)) {
        for (int i = 0; i < kSideBySide; ++i) {
          random_bits::philox_round(words[0][i], words[1][i], words[2][i], words[3][i], a, b);
        }
      });
  float values[4][kSideBySide];
  for (int word = 0; word < 4; ++word) {
    for (int i = 0; i < kSideBySide; ++i) {
      const std::uint32_t bits = words[word][i];
      values[word][i] = (of == Distribution::normal ? normal_from_bits(bits) : uniform_from_bits(bits)) * scale;
    }
  }
  for (int i = 0; i < kSideBySide; ++i) {
    for (int word = 0; word < 4; ++word) out[4 * i + word] = values[word][i];
  }
}

using DrawGroup = void (*)(std::uint64_t key, std::uint64_t group, float scale, float* out);

template <Distribution of>
void draw_anywhere(std::uint64_t key, std::uint64_t group, float scale, float* out) {
  draw_group<of>(key, group, scale, out);
}

#if defined(__x86_64__)
template <Distribution of>
[[gnu::target("avx2")]] void draw_with_avx2(std::uint64_t key, std::uint64_t group, float scale, float* out) {
  draw_group<of>(key, group, scale, out);
}
template <Distribution of>
DrawGroup drawing() {
  static const DrawGroup chosen = __builtin_cpu_supports("avx2") ? draw_with_avx2<of> : draw_anywhere<of>;
  return chosen;
}
#else
template <Distribution of>
DrawGroup drawing() {
  return draw_anywhere<of>;
}
#endif

void draw_zeros(std::uint64_t, std::uint64_t, float, float* out) { std::fill_n(out, kGroup, 0.0F); }

void draw_ramp(std::uint64_t, std::uint64_t group, float scale, float* out) {
  for (std::int64_t i = 0; i < kGroup; ++i) {
    out[i] = random_bits::ramp(group * kGroup + static_cast<std::uint64_t>(i)) * scale;
  }
}

DrawGroup drawing(Distribution distribution) {
  switch (distribution) {
    case Distribution::normal:
      return drawing<Distribution::normal>();
    case Distribution::uniform:
      return drawing<Distribution::uniform>();
    case Distribution::ramp:
      return draw_ramp;
    case Distribution::zeros:
      break;
  }
  return draw_zeros;
}

// Reads positions in rising order.
class Reader {
 public:
  Reader(const RandomStream& stream, Distribution distribution, float scale)
      : key_(stream.key()), draw_(drawing(distribution)), scale_(scale) {}
  // The numbers from `position` on: at least one, to the end of its group.
  std::span<const float> from(std::uint64_t position) {
    const std::uint64_t group = position / kGroup;
    if (group != held_) draw_(key_, group, scale_, values_.data());
    held_ = group;
    return std::span(values_).subspan(position % kGroup);
  }

 private:
  std::uint64_t key_;
  DrawGroup draw_;
  float scale_;
  std::uint64_t held_ = ~std::uint64_t{0};
  std::array<float, kGroup> values_{};
};

template <typename T>
void fill_as(const TensorView& out, Reader reader, std::uint64_t first) {
  T* base = out.as<T>();
  const int rank = out.shape.rank();
  const std::int64_t elements = out.elements();
  if (elements == 0) return;
  const std::int64_t row = rank == 0 ? 1 : out.size(rank - 1);
  const std::int64_t step = rank == 0 ? 1 : out.stride(rank - 1);
  std::array<std::int64_t, kMaxRank> index{};
  for (std::int64_t done = 0; done < elements; done += row) {
    std::int64_t offset = 0;
    for (int dim = 0; dim + 1 < rank; ++dim) offset += index[static_cast<std::size_t>(dim)] * out.stride(dim);
    for (std::int64_t i = 0; i < row;) {
      const std::span<const float> drawn = reader.from(first + static_cast<std::uint64_t>(done + i));
      const std::int64_t count = std::min(row - i, std::ssize(drawn));
      T* const place = base + offset + i * step;
      for (std::int64_t j = 0; j < count; ++j) place[j * step] = from_float<T>(drawn[static_cast<std::size_t>(j)]);
      i += count;
    }
    for (int dim = rank - 2; dim >= 0; --dim) {  // odometer over all but the last dimension
      if (++index[static_cast<std::size_t>(dim)] < out.size(dim)) break;
      index[static_cast<std::size_t>(dim)] = 0;
    }
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  std::uint32_t words[] = {counter[0], counter[1], counter[2], counter[3]};
  random_bits::philox4x32(words, key[0], key[1]);
  return {words[0], words[1], words[2], words[3]};
}

RandomStream RandomStream::derive(std::uint64_t root_seed, std::string_view experiment, std::string_view case_uid,
                                  std::string_view stream) {
  Sha256 sha;
  const auto add_number = [&sha](std::uint64_t number) {
    std::array<std::byte, 8> bytes;
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i));
    sha.update(bytes);
  };
  add_number(root_seed);
  // Each text is preceded by its length, so that ("ab", "c") and ("a", "bc") differ.
  for (const std::string_view part : {experiment, case_uid, stream}) {
    add_number(part.size());
    sha.update(part);
  }
  const auto digest = sha.finish();
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < 8; ++i) key |= static_cast<std::uint64_t>(digest[i]) << (8 * i);
  return RandomStream(key);
}

std::uint32_t RandomStream::bits(std::uint64_t position) const { return block_at(key_, position / 4)[position % 4]; }

float RandomStream::uniform(std::uint64_t position) const { return uniform_from_bits(bits(position)); }

float RandomStream::normal(std::uint64_t position) const { return normal_from_bits(bits(position)); }

void fill(const TensorView& out, const RandomStream& stream, Distribution distribution, float scale,
          std::uint64_t first) {
  const Reader reader(stream, distribution, scale);
  switch (out.dtype) {
    case DType::f64:
      return fill_as<double>(out, reader, first);
    case DType::f32:
      return fill_as<float>(out, reader, first);
    case DType::f16:
      return fill_as<f16>(out, reader, first);
    case DType::bf16:
      return fill_as<bf16>(out, reader, first);
  }
}

}  // namespace syslab
