// Compiled without contraction of multiply and add, and from the very functions that the host uses
// (core/random_bits.hpp, core/dtype.hpp), so that the bits are the same.
#include <algorithm>
#include <array>

#include "core/random_bits.hpp"
#include "device/cuda/cuda.cuh"
#include "device/cuda/kernels.hpp"

namespace syslab::device::kernels {
namespace {

__device__ const std::int32_t kNormalTable[] = {
#include "core/normal_table.inc"
};
static_assert(sizeof kNormalTable / sizeof *kNormalTable == random_bits::kTableSize);

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 8192;

struct Layout {
  std::int64_t sizes[kMaxRank], strides[kMaxRank];
  int rank;
};

__device__ float draw(Distribution distribution, std::uint32_t bits, std::uint64_t position) {
  switch (distribution) {
    case Distribution::normal:
      return random_bits::normal(bits, kNormalTable);
    case Distribution::uniform:
      return random_bits::uniform(bits);
    case Distribution::ramp:
      return random_bits::ramp(position);
    default:
      return 0.0F;
  }
}

// A thread draws the four numbers of one generator block; `blocks` are those that cover [first, first + count).
template <typename T>
__global__ void fill_elements(T* base, Layout layout, std::uint64_t key, Distribution distribution, float scale,
                              std::uint64_t first, std::int64_t count, bool contiguous) {
  const std::uint64_t begin = first / 4, end = (first + static_cast<std::uint64_t>(count) + 3) / 4;
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  const std::uint64_t mine = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::uint64_t block = begin + mine; block < end; block += step) {
    std::uint32_t words[4] = {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0};
    if (distribution == Distribution::normal || distribution == Distribution::uniform) {
      random_bits::philox4x32(words, static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32));
    }
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t position = 4 * block + static_cast<std::uint64_t>(i);
      if (position < first || position - first >= static_cast<std::uint64_t>(count)) continue;
      const auto index = static_cast<std::int64_t>(position - first);
      std::int64_t offset = contiguous ? index : 0;
      std::int64_t rest = contiguous ? 0 : index;
      for (int dim = layout.rank - 1; dim >= 0 && rest > 0; --dim) {
        offset += rest % layout.sizes[dim] * layout.strides[dim];
        rest /= layout.sizes[dim];
      }
      const float value = draw(distribution, words[i], position);
      base[offset] = from_float<T>(distribution == Distribution::zeros ? 0.0F : __fmul_rn(value, scale));
    }
  }
}

template <typename T>
void launch(const TensorView& out, std::uint64_t key, Distribution distribution, float scale, std::uint64_t first,
            Stream stream) {
  Layout layout{};
  layout.rank = out.shape.rank();
  for (int dim = 0; dim < layout.rank; ++dim) {
    layout.sizes[dim] = out.size(dim);
    layout.strides[dim] = out.stride(dim);
  }
  const std::int64_t count = out.elements();
  const bool contiguous =
      extent_elements(out.shape, out.strides) == count && out.strides == contiguous_strides(out.shape);
  const std::int64_t groups = count / 4 + 2;
  const auto blocks = static_cast<int>(std::clamp<std::int64_t>((groups + kThreads - 1) / kThreads, 1, kMostBlocks));
  fill_elements<T><<<blocks, kThreads, 0, cuda_stream(stream)>>>(out.as<T>(), layout, key, distribution, scale, first,
                                                                 count, contiguous);
  check_launch("fill_elements");
}

}  // namespace

void fill_random(const TensorView& out, std::uint64_t key, Distribution distribution, float scale, std::uint64_t first,
                 Stream stream) {
  if (out.elements() == 0) return;
  switch (out.dtype) {
    case DType::f64:
      return launch<double>(out, key, distribution, scale, first, stream);
    case DType::f32:
      return launch<float>(out, key, distribution, scale, first, stream);
    case DType::f16:
      return launch<f16>(out, key, distribution, scale, first, stream);
    case DType::bf16:
      return launch<bf16>(out, key, distribution, scale, first, stream);
  }
}

}  // namespace syslab::device::kernels
