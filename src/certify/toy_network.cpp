#include "certify/toy_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "core/random.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "parallel/in_order.hpp"

namespace syslab::parallel {
namespace {

constexpr std::int64_t kBytes = sizeof(float);

std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }

}  // namespace

// Kept by a pass, for each layer: its input (rows, in) and the gradient of its output (rows, out).
struct ToyNetwork::Activations {
  std::vector<std::vector<double>> input, doutput;
  std::int64_t rows = 0;
};

ToyNetwork::ToyNetwork(const ToyModel& model, device::Stream compute)
    : model_(model), compute_(compute), pieces_(place_pieces(), DType::f32) {
  std::int64_t elements = arena_elements_;
  for (Parameter& parameter : parameters_) {
    parameter.first = parameter.piece >= 0 ? pieces_[parameter.piece].first : elements;
    if (parameter.piece < 0) elements += parameter.elements;
  }
  gradients_.assign(index(arena_elements_), 0);
  staged_.assign(gradients_.size(), 0);
  weights_.assign(index(elements), 0);
  weights_there_ = device::Buffer(weights_.size() * kBytes, "toy_weights", compute, device::MemoryCategory::parameter);
  arena_ = device::Buffer(staged_.size() * kBytes, "toy_gradients", compute, device::MemoryCategory::gradient);
  device::fill_bytes(arena_.data(), 0, arena_.bytes(), compute);
}

ToyNetwork::~ToyNetwork() {
  try {
    device::synchronize(compute_);
  } catch (...) {  // earlier calls have reported the failure
  }
}

int ToyNetwork::add_parameter(std::string name, std::int64_t elements) {
  parameters_.push_back({std::move(name), 0, elements});
  return static_cast<int>(parameters_.size()) - 1;
}

// Registers the parameters in their order and gives those that are trained a place in the arena, in the order in which
// the backward pass finishes them.
std::vector<Piece> ToyNetwork::place_pieces() {
  const std::vector<ToyLayer>& layers = model_.layers;
  if (layers.empty()) throw Error(ErrorKind::usage, "a network without layers");
  if (model_.fixed) add_parameter("no_grad_fixed_param", 2);
  const int rare = model_.rare >= 0 ? add_parameter("rare", kRareElements) : -1;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const ToyLayer& layer = layers[i];
    const bool fits = i == 0 || layer.in == layers[i - 1].out;
    const bool tied = layer.tied_to >= 0;
    const bool ties = !tied || (index(layer.tied_to) < i && layers[index(layer.tied_to)].in == layer.in &&
                                layers[index(layer.tied_to)].out == layer.out);
    if (!fits || !ties) {
      throw Error(ErrorKind::usage,
                  fmt::format("layer {} of {} → {} fits neither the one below nor the one it is tied to", i, layer.in,
                              layer.out));
    }
    weight_of_.push_back(tied ? weight_of_[index(layer.tied_to)]
                              : add_parameter(fmt::format("fc{}.weight", i + 1), layer.in * layer.out));
    bias_of_.push_back(layer.bias ? add_parameter(fmt::format("fc{}.bias", i + 1), layer.out) : -1);
  }

  std::vector<int> order;  // of parameters, as they become final
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (layers[i].bias && !layers[i].frozen_bias) order.push_back(bias_of_[i]);
    if (layers[i].tied_to < 0) order.push_back(weight_of_[i]);  // a tied weight: with the lowest layer that uses it
  }
  if (rare >= 0) {
    const std::ptrdiff_t place = std::min<std::ptrdiff_t>(model_.rare, std::ssize(order));
    order.insert(order.begin() + place, rare);
    rare_piece_ = static_cast<int>(place);
  }
  std::vector<Piece> pieces;
  std::int64_t first = 0;
  for (const int parameter : order) {
    Parameter& placed = parameters_[index(parameter)];
    placed.piece = static_cast<int>(pieces.size());
    pieces.push_back({placed.name, first, placed.elements});
    arena_elements_ = round_up(first + placed.elements, model_.alignment);
    first = round_up(first + placed.elements + model_.padding, model_.alignment);
  }
  return pieces;
}

TensorView ToyNetwork::weights() const {
  return {weights_there_.data(), DType::f32, {static_cast<std::int64_t>(weights_.size())}};
}
TensorView ToyNetwork::gradients() const {
  return {arena_.data(), DType::f32, {static_cast<std::int64_t>(staged_.size())}};
}

std::vector<OptimizedParameter> ToyNetwork::parameters() const {
  std::vector<OptimizedParameter> made;
  for (const Parameter& parameter : parameters_) {
    const auto of = [&](const device::Buffer& buffer) {
      return TensorView(buffer.as<float>() + parameter.first, DType::f32, {parameter.elements});
    };
    made.push_back({parameter.name, of(weights_there_), parameter.piece >= 0 ? of(arena_) : TensorView{}});
  }
  return made;
}

void ToyNetwork::set_weights(std::span<const float> weights) {
  device::copy_now(weights_there_.data(), weights.data(), weights_.size() * kBytes, compute_);
  weights_.assign(weights.begin(), weights.end());
  inexact_ = false;
}

void ToyNetwork::draw_dyadic(std::uint64_t seed) {
  const RandomStream random(seed);
  std::vector<float> drawn(weights_.size());
  for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = 0.5F * static_cast<float>(random.bits(i) % 5) - 1;
  set_weights(drawn);
}

std::vector<float> ToyNetwork::read_weights() {
  device::synchronize(compute_);
  std::vector<float> weights(weights_.size());
  device::copy_now(weights.data(), weights_there_.data(), weights.size() * kBytes, compute_);
  return weights;
}

void ToyNetwork::run(std::function<void()> work, const Watching& watching) {
  if (watching.observer != nullptr) watching.observer->before_work(compute_);
  run_on(compute_, std::move(work));
}

void ToyNetwork::run_on(device::Stream stream, std::function<void()> work) {
  in_order(stream, [this, work = std::move(work)](device::Stream) {
    std::feclearexcept(FE_INEXACT);
    work();
    if (std::fetestexcept(FE_INEXACT) != 0) inexact_ = true;
  });
}

void ToyNetwork::pass(const ToyBatch& batch, double scale, bool first, bool last, const Watching& watching) {
  const auto kept = std::make_shared<Activations>();
  const auto shared = std::make_shared<const ToyBatch>(batch);
  const auto watch = std::make_shared<const Watching>(watching);
  run(
      [this, kept, shared, first] {
        if (first) std::ranges::fill(gradients_, 0.0);
        kept->rows = shared->rows;
        kept->input.assign(1, shared->x);
        kept->doutput.resize(model_.layers.size());
      },
      watching);
  for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
    fetch(weight_of_[layer], watching);
    fetch(bias_of_[layer], watching);
    run([this, kept, layer] { forward(layer, *kept); }, watching);
  }
  run([this, kept, shared, scale] { loss_gradient(*shared, scale, *kept); }, watching);
  const bool uses_rare = !batch.rare.empty();
  if (last && uses_rare && rare_piece_ == 0) finish_piece(0, uses_rare, watching);
  for (std::size_t layer = model_.layers.size(); layer-- > 0;) {
    const int bias = bias_of_[layer];
    if (bias >= 0 && !model_.layers[layer].frozen_bias) {
      run([this, kept, watch, layer] { bias_gradient(layer, *kept, *watch); }, watching);
      if (last) finish_piece(parameters_[index(bias)].piece, uses_rare, watching);
    }
    run([this, kept, watch, layer] { weight_gradient(layer, *kept, *watch); }, watching);
    run([this, kept, layer] { input_gradient(layer, *kept); }, watching);
    if (last && model_.layers[layer].tied_to < 0) {
      finish_piece(parameters_[index(weight_of_[layer])].piece, uses_rare, watching);
    }
  }
}

void ToyNetwork::finish_piece(int piece, bool uses_rare, const Watching& watching) {
  const std::size_t first = index(pieces_[piece].first), count = index(pieces_[piece].elements);
  run(
      [this, first, count] {
        for (std::size_t i = first; i < first + count; ++i) staged_[i] = static_cast<float>(gradients_[i]);
      },
      watching);
  void* place = watching.piece_place ? watching.piece_place(piece).data : arena_.as<float>() + first;
  device::copy(place, staged_.data() + first, count * kBytes, compute_);
  if (watching.piece_final) watching.piece_final(piece);
  if (uses_rare && rare_piece_ == piece + 1) finish_piece(piece + 1, uses_rare, watching);  // its turn comes next
}

void ToyNetwork::spoil(int piece) {
  const Piece& at = pieces_[piece];
  device::fill_bytes(arena_.as<float>() + at.first, 0x40, index(at.elements) * kBytes, compute_);
}

// Copies a parameter's weights from the arena, where others may have written them.
void ToyNetwork::fetch(int parameter, const Watching& watching) {
  if (parameter < 0 || parameters_[index(parameter)].piece < 0 || !watching.piece_needed) return;
  const Parameter& read = parameters_[index(parameter)];
  watching.piece_needed(read.piece);
  device::copy(weights_.data() + read.first, weights_there_.as<float>() + read.first, index(read.elements) * kBytes,
               compute_);
  if (compute_.kind == device::Kind::cuda) device::synchronize(compute_);  // the work below runs on the host
}

void ToyNetwork::forward(std::size_t at, Activations& kept) const {
  const ToyLayer& layer = model_.layers[at];
  std::vector<double> output(index(kept.rows * layer.out));
  for (std::int64_t row = 0; row < kept.rows; ++row) {
    for (std::int64_t o = 0; o < layer.out; ++o) {
      double sum = bias_of_[at] >= 0 ? weight(bias_of_[at], o) : 0;
      for (std::int64_t k = 0; k < layer.in; ++k) {
        sum += weight(weight_of_[at], o * layer.in + k) * kept.input[at][index(row * layer.in + k)];
      }
      const bool is_last = at + 1 == model_.layers.size();
      output[index(row * layer.out + o)] = is_last ? sum : std::max(sum, 0.0);
    }
  }
  kept.input.push_back(std::move(output));  // of the layer above; of the last, the network's output
}

void ToyNetwork::loss_gradient(const ToyBatch& batch, double scale, Activations& kept) {
  std::vector<double>& dy = kept.doutput.back();
  dy.resize(batch.y.size());
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = scale * (kept.input.back()[i] - batch.y[i]);
  if (!rare_piece_) return;
  double* rare = gradients_.data() + pieces_[*rare_piece_].first;
  for (std::size_t i = 0; i < batch.rare.size(); ++i) rare[i % kRareElements] += scale * batch.rare[i];
}

void ToyNetwork::bias_gradient(std::size_t layer, const Activations& kept, const Watching& watching) {
  const Parameter& bias = parameters_[index(bias_of_[layer])];
  const std::span<double> gradient(gradients_.data() + pieces_[bias.piece].first, index(bias.elements));
  for (std::size_t i = 0; i < kept.doutput[layer].size(); ++i) gradient[i % gradient.size()] += kept.doutput[layer][i];
  if (watching.observer != nullptr) watching.observer->contribution(static_cast<int>(layer), bias.piece, gradient);
}

void ToyNetwork::weight_gradient(std::size_t layer, const Activations& kept, const Watching& watching) {
  const Parameter& weight = parameters_[index(weight_of_[layer])];
  const auto [in, out] = std::pair(model_.layers[layer].in, model_.layers[layer].out);
  const std::span<double> gradient(gradients_.data() + pieces_[weight.piece].first, index(weight.elements));
  for (std::int64_t row = 0; row < kept.rows; ++row) {
    for (std::int64_t o = 0; o < out; ++o) {
      const double dy = kept.doutput[layer][index(row * out + o)];
      for (std::int64_t k = 0; k < in; ++k) gradient[index(o * in + k)] += dy * kept.input[layer][index(row * in + k)];
    }
  }
  if (watching.observer != nullptr) watching.observer->contribution(static_cast<int>(layer), weight.piece, gradient);
}

void ToyNetwork::input_gradient(std::size_t layer, Activations& kept) const {
  if (layer == 0) return;
  const auto [in, out] = std::pair(model_.layers[layer].in, model_.layers[layer].out);
  std::vector<double>& dx = kept.doutput[layer - 1];
  dx.assign(index(kept.rows * in), 0);
  for (std::int64_t row = 0; row < kept.rows; ++row) {
    for (std::int64_t k = 0; k < in; ++k) {
      if (kept.input[layer][index(row * in + k)] <= 0) continue;  // ReLU below
      double& sum = dx[index(row * in + k)];
      for (std::int64_t o = 0; o < out; ++o) {
        sum += kept.doutput[layer][index(row * out + o)] * weight(weight_of_[layer], o * in + k);
      }
    }
  }
}

void ToyNetwork::update(double rate, bool on_grid) { update({{0, gradients()}}, rate, on_grid, true, compute_); }

void ToyNetwork::update(const std::vector<Slice>& slices, double rate, bool on_grid, bool last) {
  update(slices, rate, on_grid, last, compute_);
}

void ToyNetwork::update(const std::vector<Slice>& slices, double rate, bool on_grid, bool last, device::Stream stream) {
  for (const Slice& slice : slices) {
    device::copy(staged_.data() + slice.first, slice.gradient.data, index(slice.gradient.elements()) * kBytes, stream);
  }
  if (stream.kind == device::Kind::cuda) device::synchronize(stream);  // the work below runs on the host
  run_on(stream, [this, rate, on_grid, slices, last] {
    for (const Slice& slice : slices) move(slice.first, slice.first + slice.gradient.elements(), rate, on_grid);
    if (last) history_.push_back(staged_);
  });
  for (const Slice& slice : slices) {
    device::copy(weights_there_.as<float>() + slice.first, weights_.data() + slice.first,
                 index(slice.gradient.elements()) * kBytes, stream);
  }
}

// Elements [first, end) of the arena, except padding.
void ToyNetwork::move(std::int64_t first, std::int64_t end, double rate, bool on_grid) {
  for (const Parameter& parameter : parameters_) {
    if (parameter.piece < 0) continue;
    const std::int64_t past = std::min(end, parameter.first + parameter.elements);
    for (std::int64_t i = std::max(first, parameter.first); i < past; ++i) {
      float& weight = weights_[index(i)];
      const double moved = weight - rate * staged_[index(i)];
      weight = static_cast<float>(on_grid ? std::clamp(std::nearbyint(2 * moved) / 2, -1.0, 1.0) : moved);
    }
  }
}

}  // namespace syslab::parallel
