#include "core/random.hpp"

#include <iterator>

#include "core/hash.hpp"
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

// Reads positions in rising order with one generator block for four of them.
class Reader {
 public:
  explicit Reader(std::uint64_t key) : key_(key) {}
  std::uint32_t bits(std::uint64_t position) {
    if (!held_ || position / 4 != block_) {
      block_ = position / 4;
      words_ = block_at(key_, block_);
      held_ = true;
    }
    return words_[position % 4];
  }

 private:
  std::uint64_t key_;
  std::uint64_t block_ = 0;
  bool held_ = false;
  std::array<std::uint32_t, 4> words_{};
};

template <typename T>
T stored(float value) {
  return from_float<T>(value);
}

template <typename T, typename Draw>
void fill_rows(const TensorView& out, std::uint64_t first, Draw draw) {
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
    for (std::int64_t i = 0; i < row; ++i) {
      base[offset + i * step] = stored<T>(draw(first + static_cast<std::uint64_t>(done + i)));
    }
    for (int dim = rank - 2; dim >= 0; --dim) {  // odometer over all but the last dimension
      if (++index[static_cast<std::size_t>(dim)] < out.size(dim)) break;
      index[static_cast<std::size_t>(dim)] = 0;
    }
  }
}

template <typename T>
void fill_as(const TensorView& out, const RandomStream& stream, Distribution distribution, float scale,
             std::uint64_t first) {
  Reader reader(stream.key());
  switch (distribution) {
    case Distribution::normal:
      fill_rows<T>(out, first, [&](std::uint64_t at) { return normal_from_bits(reader.bits(at)) * scale; });
      break;
    case Distribution::uniform:
      fill_rows<T>(out, first, [&](std::uint64_t at) { return uniform_from_bits(reader.bits(at)) * scale; });
      break;
    case Distribution::zeros:
      fill_rows<T>(out, first, [](std::uint64_t) { return 0.0F; });
      break;
    case Distribution::ramp:
      fill_rows<T>(out, first, [&](std::uint64_t at) { return random_bits::ramp(at) * scale; });
      break;
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
  switch (out.dtype) {
    case DType::f64:
      return fill_as<double>(out, stream, distribution, scale, first);
    case DType::f32:
      return fill_as<float>(out, stream, distribution, scale, first);
    case DType::f16:
      return fill_as<f16>(out, stream, distribution, scale, first);
    case DType::bf16:
      return fill_as<bf16>(out, stream, distribution, scale, first);
  }
}

}  // namespace syslab
