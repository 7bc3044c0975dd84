#include "trials/gated_row.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/rounding.hpp"
#include "device/parallel.hpp"
#include "ops/storage.hpp"
#include "ops/sum_of_products.hpp"

namespace syslab::parallel {
namespace {

constexpr std::int64_t kBlock = 64;  // columns that one thread sums at a time: whole lines of every row
using Block = std::array<double, kBlock>;

constexpr double kLambda = 8;  // of the header's Hoeffding bound: 2·exp(−λ²/2) = 2.5e-14

// silu(t)·s, and its error: to first order, and everything beyond that.
struct Hidden {
  double value = 0, first = 0, second = 0;
};

Hidden gated(DType dtype, double t, double s, double a, double b) {
  const double single = unit_roundoff(DType::f32), unit = dtype == DType::f32 ? 0 : unit_roundoff(dtype);
  const double sigma = 1 / (1 + std::exp(-t)), silu = t * sigma, slope = std::abs(sigma * (1 + t * (1 - sigma)));
  const double in_fp32 = (16 + 3 * (std::abs(t) + a)) * single, rounding = in_fp32 + unit + in_fp32 * unit;
  const double of_first = slope * a * std::abs(s) + std::abs(silu) * b;
  const double of_second = a * a / 4 * (std::abs(s) + b) + slope * a * b;
  const double underflow = 4 * smallest_normal(dtype) * (1 + std::abs(t) + a) * (1 + std::abs(s) + b);
  return {.value = silu * s,
          .first = of_first + rounding * std::abs(silu * s),
          .second = of_second + rounding * (of_first + of_second) + underflow};
}

template <typename Body>
void for_each_block(std::int64_t columns, const Body& body) {
  device::parallel_for((columns + kBlock - 1) / kBlock, [&](std::int64_t block, int) {
    body(block * kBlock, std::min(kBlock, columns - block * kBlock));
  });
}

template <typename T>
std::vector<Hidden> hidden_numbers(const GatedLayer& layer, const T* x, const T* weights) {
  std::vector<Hidden> hidden(static_cast<std::size_t>(layer.d_ff));
  for_each_block(layer.d_ff, [&](std::int64_t begin, std::int64_t count) {
    std::array<Block, 2> value{}, size{};
    for (std::size_t matrix = 0; matrix < 2; ++matrix) {
      const T* row = weights + static_cast<std::int64_t>(matrix) * layer.d_model * layer.d_ff + begin;
      for (std::int64_t d = 0; d < layer.d_model; ++d, row += layer.d_ff) {
        for (std::int64_t j = 0; j < count; ++j) {
          const double product = to_double(x[d]) * to_double(row[j]);
          value[matrix][static_cast<std::size_t>(j)] += product;
          size[matrix][static_cast<std::size_t>(j)] += std::abs(product);
        }
      }
    }
    for (std::int64_t j = 0; j < count; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const auto off = [&](std::size_t matrix) {
        return ops::sum_of_products_bound(dtype_of<T>, layer.d_model, value[matrix][at], size[matrix][at]);
      };
      hidden[static_cast<std::size_t>(begin + j)] = gated(dtype_of<T>, value[0][at], value[1][at], off(0), off(1));
    }
  });
  return hidden;
}

template <typename T>
GatedRow row_of(const GatedLayer& layer, const T* x, const T* weights, std::int64_t parts) {
  const std::vector<Hidden> hidden = hidden_numbers(layer, x, weights);
  const std::int64_t width = layer.d_model, part = layer.d_ff / parts;
  const double single = unit_roundoff(DType::f32), unit = unit_roundoff(dtype_of<T>);
  const double of_sum = std::min(gamma(part, single), gamma_probable(part, single));
  GatedRow row{std::vector<double>(static_cast<std::size_t>(width)),
               std::vector<double>(static_cast<std::size_t>(width))};
  for_each_block(width, [&](std::int64_t begin, std::int64_t count) {
    Block value{}, of_parts{}, magnitude{}, linear{}, squares{}, second{};
    for (std::int64_t first = 0; first < layer.d_ff; first += part) {
      Block sum{};
      for (std::int64_t f = first; f < first + part; ++f) {
        const Hidden& z = hidden[static_cast<std::size_t>(f)];
        const T* weight = weights + (2 * layer.d_ff + f) * width + begin;
        for (std::int64_t j = 0; j < count; ++j) {
          const auto at = static_cast<std::size_t>(j);
          const double w = to_double(weight[j]), size = std::abs(w);
          sum[at] += z.value * w;
          magnitude[at] += (std::abs(z.value) + z.first + z.second) * size;
          linear[at] += z.first * size;
          squares[at] += z.first * w * z.first * w;
          second[at] += z.second * size;
        }
      }
      for (std::size_t at = 0; at < kBlock; ++at) {
        value[at] += sum[at];
        of_parts[at] += std::abs(sum[at]);
      }
    }
    for (std::int64_t j = 0; j < count; ++j) {
      const auto at = static_cast<std::size_t>(j), to = static_cast<std::size_t>(begin + j);
      const double inherited = std::min(linear[at], kLambda * std::sqrt(squares[at])) + second[at];
      const double carried = of_sum * magnitude[at];
      row.value[to] = value[at];
      row.bound[to] = inherited + carried + gamma(parts, unit) * (of_parts[at] + linear[at] + second[at] + carried) +
                      smallest_normal(dtype_of<T>);
    }
  });
  return row;
}

}  // namespace

GatedRow gated_row(const GatedLayer& layer, const ConstTensorView& x, const ConstTensorView& weights,
                   std::int64_t parts) {
  return ops::with_storage(x.dtype, [&]<typename T>() { return row_of(layer, x.as<T>(), weights.as<T>(), parts); });
}

}  // namespace syslab::parallel
