// The inner loops of flash_tiled, written once for any vector width and compiled once for each instruction set.
//
// Only flash_kernels_*.cpp include this. Everything is in an unnamed namespace and calls no library function: the
// linker could otherwise keep the AVX-512 copy of a shared function for all files.
#pragma once

#include "ops/attention/tiled/kernels.hpp"

namespace syslab::attention {
namespace {

template <int kLanes, int kRows>
struct Micro {
  static constexpr std::int64_t kStrip = 2 * kLanes;
  typedef float Vector __attribute__((vector_size(kLanes * 4)));
  typedef std::uint32_t Bits __attribute__((vector_size(kLanes * 4)));
  typedef float Unaligned __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

  [[gnu::always_inline]] static inline Vector load(const float* from) {
    return *reinterpret_cast<const Unaligned*>(from);
  }
  [[gnu::always_inline]] static inline void store(float* to, Vector value) {
    *reinterpret_cast<Unaligned*>(to) = value;
  }
  [[gnu::always_inline]] static inline Vector splat(float value) { return value - Vector{}; }
  [[gnu::always_inline]] static inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }

  [[gnu::always_inline]] static inline float largest_lane(Vector v) {
    float lanes[kLanes];
    store(lanes, v);
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
    }
    return lanes[0];
  }

  // 2^x = 2^n·2^f with n the nearest integer: adding 1.5·2²³ leaves n in the low bits of the sum, ready to be added to
  // the exponent. 2^f on [−½, ½]: degree 5, minimax in relative error (1.53 units), constant term exactly 1.
  [[gnu::always_inline]] static inline Vector power_of_two(Vector x) {
    const Vector magic = splat(0x1.8p23F);
    x = x < splat(128.0F) ? x : splat(128.0F);
    const Vector shifted = x + magic;
    const Vector f = x - (shifted - magic);
    Vector p = splat(0x1.5bba14p-10F);
    p = p * f + splat(0x1.3cea88p-7F);
    p = p * f + splat(0x1.c6b752p-5F);
    p = p * f + splat(0x1.ebf9bcp-3F);
    p = p * f + splat(0x1.62e42ap-1F);
    p = p * f + splat(1.0F);
    const Vector result = reinterpret_cast<Vector>(reinterpret_cast<Bits>(p) + (reinterpret_cast<Bits>(shifted) << 23));
    return x < splat(-126.0F) ? Vector{} : result;
  }

  // acc[r][n] += Σ_k a[k·kStepA + r·kRowA]·b[k·step_b + n·kLanes]: kRows × kVectors independent chains of
  // multiply-adds.
  template <int kVectors, std::int64_t kStepA, std::int64_t kRowA>
  [[gnu::always_inline]] static inline void multiply(const float* a, const float* b, std::int64_t step_b,
                                                     std::int64_t count, Vector (&acc)[kRows][kVectors]) {
    for (std::int64_t k = 0; k < count; ++k, a += kStepA, b += step_b) {
      Vector column[kVectors];
#pragma GCC unroll 2
      for (int n = 0; n < kVectors; ++n) column[n] = load(b + n * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vector factor = splat(a[r * kRowA]);
#pragma GCC unroll 2
        for (int n = 0; n < kVectors; ++n) acc[r][n] += factor * column[n];
      }
    }
  }

  static void scores(const float* panel, const float* turned, std::int64_t depth, std::int64_t begin, std::int64_t end,
                     float* scores) {
    for (std::int64_t column = begin / kStrip * kStrip; column < end; column += kStrip) {
      Vector acc[kRows][2] = {};
      multiply<2, kRows, 1>(panel, turned + column * depth, kStrip, depth, acc);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        store(scores + r * kTile + column, acc[r][0]);
        store(scores + r * kTile + column + kLanes, acc[r][1]);
      }
    }
  }

  template <int kVectors>
  [[gnu::always_inline]] static inline void accumulate_columns(const float* weights, std::int64_t count,
                                                               const float* straight, std::int64_t width,
                                                               const float* rescale, float* sums) {
    Vector acc[kRows][kVectors];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int n = 0; n < kVectors; ++n) {
        acc[r][n] = load(sums + r * width + n * kLanes);
        if (rescale != nullptr) acc[r][n] *= splat(rescale[r]);
      }
    }
    multiply<kVectors, 1, kTile>(weights, straight, width, count, acc);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int n = 0; n < kVectors; ++n) store(sums + r * width + n * kLanes, acc[r][n]);
    }
  }

  static void accumulate(const float* weights, std::int64_t begin, std::int64_t end, const float* straight,
                         std::int64_t width, const float* rescale, float* sums) {
    weights += begin;
    straight += begin * width;
    std::int64_t d = 0;
    for (; d + kStrip <= width; d += kStrip) {
      accumulate_columns<2>(weights, end - begin, straight + d, width, rescale, sums + d);
    }
    if (d < width) accumulate_columns<1>(weights, end - begin, straight + d, width, rescale, sums + d);
  }

  static void softmax(float* scores, const Visible& visible, std::int64_t end, float* m, float* l, float* rescale) {
    constexpr float kNever = -__builtin_inff();
    float shift[kMaxLanes];
    for (int r = 0; r < kRows; ++r) {
      float* row = scores + r * kTile;
      const std::int64_t last = visible.last[r];
      for (std::int64_t c = last; c % kLanes != 0; ++c) row[c] = kNever;
      Vector largest = splat(m[r]);
      for (std::int64_t c = 0; c < last; c += kLanes) largest = larger(load(row + c), largest);
      const float next = largest_lane(largest);
      // A row that has seen no key yet keeps m = −∞; avoid −∞ − (−∞).
      shift[r] = next == kNever ? 0.0F : m[r] - next;
      m[r] = next;
    }
    for (int r = kRows; r < kMaxLanes; ++r) shift[r] = 0.0F;
    for (int r = 0; r < kMaxLanes; r += kLanes) store(shift + r, power_of_two(load(shift + r)));
    for (int r = 0; r < kRows; ++r) {
      float* row = scores + r * kTile;
      rescale[r] = shift[r];
      const Vector largest = splat(m[r]);
      Vector sum = load(l + r * kLanes) * splat(shift[r]);
      std::int64_t c = 0;
      for (; c < visible.last[r]; c += kLanes) {
        const Vector weight = power_of_two(load(row + c) - largest);
        store(row + c, weight);
        sum += weight;
      }
      for (; c < end; c += kLanes) store(row + c, Vector{});
      store(l + r * kLanes, sum);
    }
  }

  template <bool kByRow>
  static void gradient(float* scores, float* dp, const float* lse, const float* dot, const Visible& visible,
                       std::int64_t begin, std::int64_t end) {
    begin = begin / kLanes * kLanes;
    for (int r = 0; r < kRows; ++r) {
      float *score = scores + r * kTile, *ds = dp + r * kTile;
      for (std::int64_t c = begin; c < end; c += kLanes) {
        const Vector weight = power_of_two(load(score + c) - (kByRow ? splat(lse[r]) : load(lse + c)));
        store(score + c, weight);
        store(ds + c, weight * (load(ds + c) - (kByRow ? splat(dot[r]) : load(dot + c))));
      }
      for (std::int64_t c = begin; c < visible.first[r] && c < end; ++c) score[c] = ds[c] = 0.0F;
      for (std::int64_t c = visible.last[r]; c < end; ++c) score[c] = ds[c] = 0.0F;
    }
  }

  static void exp2(float* values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += kLanes) store(values + i, power_of_two(load(values + i)));
  }

  static constexpr FlashKernels table(std::string_view name) {
    return {name, kRows, kLanes, kStrip, scores, accumulate, softmax, gradient<true>, gradient<false>, exp2};
  }
};

}  // namespace
}  // namespace syslab::attention
