#include "trials/split_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text/text.hpp"
#include "device/blas.hpp"
#include "device/fill_random.hpp"
#include "device/memory.hpp"
#include "parallel/in_order.hpp"
#include "trials/gated_row.hpp"

namespace syslab::parallel {
namespace {

constexpr comm::Purpose kLayerPurpose{"benchmark", "gated layer"};
constexpr int kNotANumber = 0xff;  // every byte of it: in fp32 and in bf16

void must_divide(std::int64_t what, std::int64_t ranks, const char* name) {
  if (what % ranks == 0) return;
  throw Error(ErrorKind::usage, fmt::format("{} {} are not divided evenly among {} ranks", what, name, ranks));
}

DType dtype_of_elements(std::int64_t bytes) {
  if (bytes == 4) return DType::f32;
  if (bytes == 2) return DType::bf16;
  throw Error(ErrorKind::usage,
              fmt::format("no layer is computed in elements of {} bytes: 4 (fp32) or 2 (bf16) are wanted", bytes));
}

const gemm::Rung& product_rung(device::Kind kind, DType dtype) {
  if (kind == device::Kind::cuda) return gemm::find_rung("cublas");
  return gemm::find_rung(dtype == DType::f32 && device::openblas_found() ? "openblas" : "tiled");
}

const swiglu::Rung& gate_rung(device::Kind kind) {
  return swiglu::find_rung(kind == device::Kind::cuda ? "fused_cuda" : "naive");
}

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

SplitLayer::SplitLayer(comm::Communicator& ranks, const GatedLayer& layer, LayerSplit split, std::uint64_t seed,
                       device::Stream stream)
    : ranks_(ranks),
      layer_(layer),
      split_(split),
      dtype_(dtype_of_elements(layer.element_bytes)),
      stream_(stream),
      product_(product_rung(stream.kind, dtype_)),
      gate_(gate_rung(stream.kind)),
      tokens_(RandomStream::derive(seed, "split layer", "", "tokens")),
      awaits_(stream) {
  require_even(layer, ranks.size());
  const std::int64_t width = layer.d_model, hidden = layer.d_ff;
  // Hidden values of about 1, and sums of about 1, too.
  const RandomStream drawn = RandomStream::derive(seed, "split layer", "", "weights");
  const float into = 1 / std::sqrt(static_cast<float>(width)), out = 1 / std::sqrt(static_cast<float>(hidden));
  device::Buffer all = room(weight_count(), "gated layer: all weights");
  const TensorView two = piece(all, 0, {2 * width * hidden}), third = piece(all, two.shape[0], {width * hidden});
  in_order(stream, [=](device::Stream on) {
    device::fill_random(two, drawn, Distribution::normal, into, 0, on);
    device::fill_random(third, drawn, Distribution::normal, out, static_cast<std::uint64_t>(two.shape[0]), on);
  });
  all_ = device::Buffer(all.bytes(), "gated layer: what is checked against");
  device::copy_now(all_.data(), all.data(), all.bytes(), stream);
  if (split == LayerSplit::fsdp) {
    weights_ = std::move(all);
  } else {
    take_columns(all);
  }
  x_ = room(rows() * width, "gated layer: x");
  x1_ = room(rows() * columns(), "gated layer: x1");
  x2_ = room(rows() * columns(), "gated layer: x2");
  y_ = room(rows() * width, "gated layer: y");
}

device::Buffer SplitLayer::room(std::int64_t elements, const char* tag) const {
  return {static_cast<std::size_t>(elements) * size_of(dtype_), tag, stream_};
}

TensorView SplitLayer::piece(const device::Buffer& of, std::int64_t first, Shape shape) const {
  return {of.as<char>() + static_cast<std::size_t>(first) * size_of(dtype_), dtype_, std::move(shape)};
}

void SplitLayer::take_columns(const device::Buffer& all) {
  const std::int64_t width = layer_.d_model, hidden = layer_.d_ff, first = ranks_.rank() * columns();
  weights_ = room(part(), "gated layer: this rank's weights");
  const auto take = [&](std::int64_t to, std::int64_t from, std::int64_t elements) {
    device::copy(piece(weights_, to, {elements}).data, piece(all, from, {elements}).data,
                 static_cast<std::size_t>(elements) * size_of(dtype_), stream_);
  };
  for (std::int64_t row = 0; row < 2 * width; ++row) take(row * columns(), row * hidden + first, columns());
  take(2 * width * columns(), 2 * width * hidden + first * width, columns() * width);
  device::synchronize(stream_);  // before `all` goes, where the stream is a queue of the CPU
}

void SplitLayer::refresh() {
  const std::int64_t width = layer_.d_model;
  const std::int64_t first = split_ == LayerSplit::fsdp ? ranks_.rank() * rows() * width : 0;
  const auto at = static_cast<std::uint64_t>(layer_.tokens * width) * sample_++ + static_cast<std::uint64_t>(first);
  in_order(stream_, [this, at, x = piece(x_, 0, {rows() * width})](device::Stream on) {
    device::fill_random(x, tokens_, Distribution::normal, 1, at, on);
  });
  // Communicating alone sums what is in the buffer: finite numbers, so that NaN does not slow down any rank's
  // arithmetic.
  device::fill_bytes(y_.data(), 0, y_.bytes(), stream_);
  if (split_ != LayerSplit::fsdp) return;
  const std::size_t part_bytes = weights_.bytes() / static_cast<std::size_t>(ranks_.size());
  const std::size_t before = static_cast<std::size_t>(ranks_.rank()) * part_bytes, behind = before + part_bytes;
  device::fill_bytes(weights_.data(), kNotANumber, before, stream_);
  device::fill_bytes(weights_.as<char>() + behind, kNotANumber, weights_.bytes() - behind, stream_);
}

void SplitLayer::communicate() {
  if (split_ == LayerSplit::tensor) {
    ranks_.all_reduce(piece(y_, 0, {rows() * layer_.d_model}), comm::Reduction::sum, kLayerPurpose, stream_);
  } else {
    const TensorView whole = piece(weights_, 0, {weight_count()});
    const TensorView own = piece(weights_, ranks_.rank() * part(), {part()});
    ranks_.all_gather(ConstTensorView(own), whole, kLayerPurpose, stream_);
  }
}

void SplitLayer::multiply(const TensorView& a, const TensorView& b, const TensorView& c, device::Stream stream) const {
  product_.run({a.shape[0], b.shape[1], a.shape[1], dtype_}, {a, b, c}, {}, stream);
}

void SplitLayer::compute() {
  in_order(stream_, [this](device::Stream on) {
    const std::int64_t width = layer_.d_model, hidden = columns(), matrix = width * hidden;
    const TensorView x = piece(x_, 0, {rows(), width}), y = piece(y_, 0, {rows(), width});
    const TensorView x1 = piece(x1_, 0, {rows(), hidden}), x2 = piece(x2_, 0, {rows(), hidden});
    multiply(x, piece(weights_, 0, {width, hidden}), x1, on);
    multiply(x, piece(weights_, matrix, {width, hidden}), x2, on);
    gate_.forward({rows(), hidden, dtype_}, {x1, x2, x1}, {}, on);
    multiply(x1, piece(weights_, 2 * matrix, {hidden, width}), y, on);
  });
}

void SplitLayer::forward() {
  if (split_ == LayerSplit::fsdp) communicate();
  compute();
  if (split_ == LayerSplit::tensor) communicate();
}

double SplitLayer::error_of_row(std::int64_t row) const {
  const std::int64_t width = layer_.d_model;
  const auto fetched = [&](const device::Buffer& from) {
    device::Buffer here(static_cast<std::size_t>(width) * size_of(dtype_), "gated layer: a row");
    device::copy_now(here.data(), piece(from, row * width, {width}).data, here.bytes(), stream_);
    return here;
  };
  const device::Buffer x = fetched(x_), y = fetched(y_);
  const GatedRow expected = gated_row(layer_, piece(x, 0, {width}), piece(all_, 0, {weight_count()}),
                                      split_ == LayerSplit::tensor ? ranks_.size() : 1);
  const std::vector<double> found = to_doubles(piece(y, 0, {width}));
  double worst = 0;
  for (std::size_t d = 0; d < found.size(); ++d) {
    const double off = std::abs(found[d] - expected.value[d]) / expected.bound[d];
    if (std::isnan(off)) return off;
    worst = std::max(worst, off);
  }
  return worst;
}

std::vector<device::Elements> SplitLayer::results() const {
  return {{.at = y_.data(), .dtype = dtype_, .count = rows() * layer_.d_model}};
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
