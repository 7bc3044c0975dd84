#include "parallel/split_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "core/rounding.hpp"
#include "core/text.hpp"
#include "device/blas.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {
namespace {

constexpr comm::Purpose kPurpose{"benchmark", "gated layer"};

TensorView flat(float* data, std::int64_t elements) { return TensorView(data, DType::f32, {elements}); }

void must_divide(std::int64_t what, std::int64_t ranks, const char* name) {
  if (what % ranks == 0) return;
  throw Error(ErrorKind::usage, fmt::format("{} {} are not divided evenly among {} ranks", what, name, ranks));
}

std::vector<float> room(std::int64_t elements) { return std::vector<float>(static_cast<std::size_t>(elements)); }

}  // namespace

LayerSplit parse_layer_split(std::string_view name) {
  if (name == "fsdp") return LayerSplit::fsdp;
  if (name == "tensor") return LayerSplit::tensor;
  throw Error(ErrorKind::usage, unknown_name("layout", std::string(name), std::vector<std::string>{"fsdp", "tensor"}));
}

void require_even(const GatedLayer& layer, std::int64_t ranks) {
  validate(layer);
  must_divide(layer.tokens, ranks, "tokens");
  must_divide(layer.d_ff, ranks, "hidden numbers");
}

SplitLayer::SplitLayer(comm::Communicator& ranks, const GatedLayer& layer, LayerSplit split, std::uint64_t seed)
    : ranks_(ranks),
      layer_(layer),
      split_(split),
      tokens_(RandomStream::derive(seed, "split layer", "", "tokens")),
      all_(room(3 * layer.d_model * layer.d_ff)) {
  require_even(layer, ranks.size());
  const std::int64_t width = layer.d_model, hidden = layer.d_ff, whole = width * hidden;
  // Hidden numbers of about 1, and sums of them, too.
  const RandomStream drawn = RandomStream::derive(seed, "split layer", "", "weights");
  const float into = 1 / std::sqrt(static_cast<float>(width)), out = 1 / std::sqrt(static_cast<float>(hidden));
  fill(flat(all_.data(), 2 * whole), drawn, Distribution::normal, into);
  fill(flat(all_.data() + 2 * whole, whole), drawn, Distribution::normal, out, static_cast<std::uint64_t>(2 * whole));
  if (split == LayerSplit::fsdp) {
    weights_ = all_;
  } else {
    const std::int64_t first = ranks.rank() * columns();
    for (int matrix = 0; matrix < 2; ++matrix) {
      for (std::int64_t row = 0; row < width; ++row) {
        const auto begin = all_.begin() + matrix * whole + row * hidden + first;
        weights_.insert(weights_.end(), begin, begin + columns());
      }
    }
    const auto begin = all_.begin() + 2 * whole + first * width;
    weights_.insert(weights_.end(), begin, begin + columns() * width);
  }
  x_ = room(rows() * width);
  x1_ = room(rows() * columns());
  x2_ = room(rows() * columns());
  y_ = room(rows() * width);
}

std::int64_t SplitLayer::part() const { return static_cast<std::int64_t>(all_.size()) / ranks_.size(); }

void SplitLayer::refresh() {
  const std::int64_t numbers = layer_.tokens * layer_.d_model;
  const std::int64_t first = split_ == LayerSplit::fsdp ? ranks_.rank() * rows() * layer_.d_model : 0;
  const auto at = static_cast<std::uint64_t>(numbers) * sample_++ + static_cast<std::uint64_t>(first);
  fill(flat(x_.data(), rows() * layer_.d_model), tokens_, Distribution::normal, 1, at);
  const float poison = std::numeric_limits<float>::quiet_NaN();
  // Communicating alone sums what is here: a number, so that no rank's arithmetic is slowed by what is none.
  std::fill(y_.begin(), y_.end(), 0.0F);
  if (split_ != LayerSplit::fsdp) return;
  const std::int64_t own = ranks_.rank() * part();
  std::fill(weights_.begin(), weights_.begin() + own, poison);
  std::fill(weights_.begin() + own + part(), weights_.end(), poison);
}

void SplitLayer::communicate(device::Stream stream) {
  if (split_ == LayerSplit::tensor) {
    ranks_.all_reduce(flat(y_.data(), rows() * layer_.d_model), comm::Reduction::sum, kPurpose, stream);
  } else {
    const TensorView whole = flat(weights_.data(), static_cast<std::int64_t>(weights_.size()));
    const TensorView own = flat(weights_.data() + ranks_.rank() * part(), part());
    ranks_.all_gather(ConstTensorView(own), whole, kPurpose, stream);
  }
  device::synchronize(stream);  // products are the host's own, on no stream
}

void SplitLayer::compute() {
  const std::int64_t width = layer_.d_model, hidden = columns(), matrix = width * hidden;
  const float* weights = weights_.data();
  device::sgemm(false, false, rows(), hidden, width, 1, x_.data(), width, weights, hidden, 0, x1_.data(), hidden);
  device::sgemm(false, false, rows(), hidden, width, 1, x_.data(), width, weights + matrix, hidden, 0, x2_.data(),
                hidden);
  for (std::size_t i = 0; i < x1_.size(); ++i) x1_[i] = std::max(x1_[i], 0.0F) * x2_[i];
  device::sgemm(false, false, rows(), width, hidden, 1, x1_.data(), hidden, weights + 2 * matrix, width, 0, y_.data(),
                width);
}

void SplitLayer::forward(device::Stream stream) {
  if (split_ == LayerSplit::fsdp) communicate(stream);
  compute();
  if (split_ == LayerSplit::tensor) communicate(stream);
}

double SplitLayer::error_of_row(std::int64_t row) const {
  const std::int64_t width = layer_.d_model, hidden = layer_.d_ff, whole = width * hidden;
  const double unit = unit_roundoff(DType::f32), of_hidden = gamma(width, unit);
  const double of_sum = gamma(hidden + ranks_.size(), unit);
  const float* x = x_.data() + row * width;
  std::vector<double> sum(static_cast<std::size_t>(width)), bound(static_cast<std::size_t>(width));
  for (std::int64_t f = 0; f < hidden; ++f) {
    double value[2] = {0, 0}, size[2] = {0, 0};
    for (int matrix = 0; matrix < 2; ++matrix) {
      for (std::int64_t d = 0; d < width; ++d) {
        const double product = double(x[d]) * all_[static_cast<std::size_t>(matrix * whole + d * hidden + f)];
        value[matrix] += product;
        size[matrix] += std::abs(product);
      }
    }
    const double first = std::max(value[0], 0.0), z = first * value[1];
    const double off1 = of_hidden * size[0], off2 = of_hidden * size[1];
    const double off =
        first * off2 + std::abs(value[1]) * off1 + off1 * off2 + unit * (first + off1) * (std::abs(value[1]) + off2);
    for (std::int64_t d = 0; d < width; ++d) {
      const double weight = all_[static_cast<std::size_t>(2 * whole + f * width + d)];
      sum[static_cast<std::size_t>(d)] += z * weight;
      bound[static_cast<std::size_t>(d)] += (off + of_sum * (std::abs(z) + off)) * std::abs(weight);
    }
  }
  double worst = 0;
  for (std::int64_t d = 0; d < width; ++d) {
    const auto at = static_cast<std::size_t>(d);
    const double found = std::abs(double(y_[static_cast<std::size_t>(row * width + d)]) - sum[at]) / bound[at];
    if (!(found <= worst)) worst = found;  // a NaN stays one
  }
  return worst;
}

double SplitLayer::error() const {
  const double first = error_of_row(0), last = error_of_row(rows() - 1);
  return std::isnan(first) || first > last ? first : last;
}

double SplitLayer::checked_fraction() const { return std::min(1.0, 2.0 / static_cast<double>(rows())); }

PassCosts SplitLayer::costs() const {
  const std::int64_t ranks = ranks_.size();
  const Grid grid = split_ == LayerSplit::fsdp ? Grid{ranks, 1} : Grid{1, ranks};
  return sharded_costs(layer_, grid, Pass::forward);
}

}  // namespace syslab::parallel
