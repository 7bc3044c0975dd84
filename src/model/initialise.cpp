#include "model/initialise.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

#include "core/random.hpp"
#include "core/random_bits.hpp"
#include "device/parallel.hpp"

namespace syslab::model {
namespace {

constexpr std::int32_t kNormalTable[] = {
#include "core/normal_table.inc"
};
static_assert(std::size(kNormalTable) == random_bits::kTableSize);

// A normal number is a sign and a two-sided tail probability t / 2^31 (core/random_bits.hpp). Cutting at ±3σ is to draw
// t from [kTail, 2^31) alone, where kTail / 2^31 = P(|z| > 3) = erfc(3 / √2) = 0.0026997960632601866, rounded up.
constexpr std::uint64_t kHalfLine = std::uint64_t{1} << 31;
constexpr std::uint64_t kTail = 5'797'768;
constexpr float kCut = 3.0F;

float cut_normal(std::uint32_t bits) {
  const std::uint64_t uniform = bits & 0x7fffffffU;
  const auto tail = static_cast<std::uint32_t>(kTail + ((uniform * (kHalfLine - kTail)) >> 31));
  // The table's own rounding may leave it an ulp beyond.
  return std::clamp(random_bits::normal((bits & 0x80000000U) | tail, kNormalTable), -kCut, kCut);
}

// Elements [first, first + count) of the stream, `first` a multiple of 4.
void draw(const RandomStream& stream, std::uint64_t first, std::int64_t count, float sigma, float* out) {
  const std::uint64_t key = stream.key();
  for (std::int64_t done = 0; done < count; done += 4) {
    const std::uint64_t block = (first + static_cast<std::uint64_t>(done)) / 4;
    const auto words = philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                                  {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
    const std::int64_t here = std::min<std::int64_t>(4, count - done);
    for (std::int64_t i = 0; i < here; ++i) out[done + i] = cut_normal(words[static_cast<std::size_t>(i)]) * sigma;
  }
}

constexpr std::int64_t kStaged = std::int64_t{1} << 22;        // elements drawn before they are copied: 16 MiB
constexpr std::int64_t kDrawnAtATime = std::int64_t{1} << 16;  // by a thread

}  // namespace

double initial_sigma(const ParameterInfo& info) {
  switch (info.kind) {
    case ParameterKind::embedding:
      return 1.0;
    case ParameterKind::linear:
      return std::sqrt(2.0 / static_cast<double>(info.shape[0] + info.shape[1]));
    case ParameterKind::norm:
      return 0.0;
  }
  return 0.0;
}

void initialise(ParameterArena& arena, std::uint64_t seed) {
  initialise(arena.layout(), seed, [&arena](int parameter, std::int64_t first, const ConstTensorView& values) {
    arena.write(Plane::weight, parameter, first, values);
  });
}

void initialise(const ParameterLayout& layout, std::uint64_t seed, const WriteWeights& write) {
  const auto staged = std::make_unique_for_overwrite<float[]>(kStaged);
  for (int index = 0; index < layout.size(); ++index) {
    const ParameterInfo& info = layout.info(index);
    const RandomStream stream = RandomStream::derive(seed, "model", "initialise", info.name);
    const auto sigma = static_cast<float>(initial_sigma(info));
    const std::int64_t elements = info.shape.elements();
    for (std::int64_t first = 0; first < elements; first += kStaged) {
      const std::int64_t count = std::min(kStaged, elements - first);
      device::parallel_for((count + kDrawnAtATime - 1) / kDrawnAtATime, [&](std::int64_t piece, int) {
        const std::int64_t begin = piece * kDrawnAtATime, here = std::min(kDrawnAtATime, count - begin);
        if (info.kind == ParameterKind::norm) {
          std::fill_n(staged.get() + begin, here, 1.0F);
        } else {
          draw(stream, static_cast<std::uint64_t>(first + begin), here, sigma, staged.get() + begin);
        }
      });
      write(index, first, ConstTensorView(staged.get(), DType::f32, {count}));
    }
  }
}

}  // namespace syslab::model
