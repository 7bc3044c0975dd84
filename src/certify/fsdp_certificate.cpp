#include "certify/fsdp_certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cmath>
#include <memory>

#include "core/error.hpp"
#include "core/index.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "parallel/in_order.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;

std::string weight_name(std::size_t layer) { return fmt::format("fc{}.weight", layer + 1); }
std::string bias_name(std::size_t layer) { return fmt::format("fc{}.bias", layer + 1); }

// The matrices of each layer, in the order of layers.
std::vector<std::vector<ShardedMatrix>> matrices_of(const FsdpCertificateCase& asked) {
  std::vector<std::vector<ShardedMatrix>> made;
  for (const ToyLayer& layer : asked.asked.model.layers) {
    const std::string name = weight_name(made.size());
    const std::int64_t first = asked.joined ? layer.out / 2 : 0;
    std::vector<ShardedMatrix>& of = made.emplace_back();
    if (first > 0) of.push_back({name + " above", first, layer.in});
    of.push_back({name, layer.out - first, layer.in});
  }
  return made;
}

// The network. It computes on the host: in stream order, weights are copied from the lent memory, and gradients to the
// place where Fsdp wants them.
class LentNetwork {
 public:
  LentNetwork(const FsdpCertificateCase& asked, Fsdp& fsdp, Stream compute, Stream communication)
      : layers_(asked.asked.model.layers), fsdp_(fsdp), compute_(compute), communication_(communication) {
    int tensor = 0;
    for (const ToyLayer& layer : layers_) {
      weight_.emplace_back(at(layer.in * layer.out));
      gradient_.emplace_back(at(layer.in * layer.out));
      bias_.emplace_back(at(layer.out));
      bias_gradient_.emplace_back(at(layer.out));
      tensor_.push_back(layer.bias ? tensor++ : -1);
    }
    own_weights_.resize(at(fsdp.layout().elements()));
    own_gradients_.resize(own_weights_.size());
  }
  ~LentNetwork() {
    try {
      device::synchronize(compute_);
    } catch (...) {  // earlier calls have reported the failure
    }
  }
  LentNetwork(const LentNetwork&) = delete;
  LentNetwork& operator=(const LentNetwork&) = delete;

  void pass(const ToyBatch& batch, double scale, bool add) {
    kept_ = std::make_shared<Kept>();
    kept_->x = {batch.x};
    kept_->rows = batch.rows;
    kept_->dy.resize(layers_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) forward(i);
    run([kept = kept_, y = batch.y, scale] {
      std::vector<double>& dy = kept->dy.back();
      for (std::size_t i = 0; i < y.size(); ++i) dy.push_back(scale * (kept->x.back()[i] - y[i]));
    });
    for (std::size_t i = layers_.size(); i-- > 0;) backward(i, add);
  }

  // Before work is queued on a stream.
  void work(Stream stream) const {
    if (StepObserver* observer = fsdp_.options().observer) observer->before_work(stream);
  }

  // Weights −= rate · gradient, on the grid.
  void update(double rate) {
    const std::size_t bytes = own_weights_.size() * sizeof(float);
    work(compute_);
    device::copy(own_weights_.data(), fsdp_.weights().data, bytes, compute_);
    device::copy(own_gradients_.data(), fsdp_.gradients().data, bytes, compute_);
    if (compute_.kind == device::Kind::cuda) device::synchronize(compute_);
    run([this, rate] {
      history_.push_back(own_gradients_);
      for (std::size_t i = 0; i < own_weights_.size(); ++i) {
        const double moved = own_weights_[i] - rate * own_gradients_[i];
        own_weights_[i] = static_cast<float>(std::clamp(std::nearbyint(2 * moved) / 2, -1.0, 1.0));
      }
    });
    device::copy(fsdp_.weights().data, own_weights_.data(), bytes, compute_);
  }

  const std::vector<std::vector<float>>& history() const { return history_; }
  bool inexact() const { return inexact_; }
  int tensor(std::size_t layer) const { return tensor_[layer]; }

 private:
  struct Kept {
    std::vector<std::vector<double>> x, dy;
    std::int64_t rows = 0;
  };

  int bracket(std::size_t layer) const { return static_cast<int>(layers_.size() - 1 - layer); }
  void run(std::function<void()> body) {
    work(compute_);
    in_order(compute_, [this, body = std::move(body)](Stream) {
      std::feclearexcept(FE_INEXACT);
      body();
      if (std::fetestexcept(FE_INEXACT) != 0) inexact_ = true;
    });
  }
  void copy(void* to, const void* from, std::size_t floats) const {
    work(compute_);
    device::copy(to, from, floats * sizeof(float), compute_);
    if (compute_.kind == device::Kind::cuda) device::synchronize(compute_);  // the work after it runs on the host
  }
  void take_weight(std::size_t layer) {
    work(communication_);
    const ConstTensorView lent = fsdp_.gathered().read(bracket(layer));
    copy(weight_[layer].data(), lent.data, weight_[layer].size());
    fsdp_.gathered().done(bracket(layer));
  }

  void forward(std::size_t i) {
    take_weight(i);
    if (tensor_[i] >= 0) copy(bias_[i].data(), fsdp_.replicated(tensor_[i]).data, bias_[i].size());
    run([this, kept = kept_, i] {
      const ToyLayer& layer = layers_[i];
      std::vector<double> y(at(kept->rows * layer.out));
      for (std::int64_t row = 0; row < kept->rows; ++row) {
        for (std::int64_t o = 0; o < layer.out; ++o) {
          double sum = layer.bias ? bias_[i][at(o)] : 0;
          for (std::int64_t k = 0; k < layer.in; ++k) {
            sum += weight_[i][at(o * layer.in + k)] * kept->x[i][at(row * layer.in + k)];
          }
          y[at(row * layer.out + o)] = i + 1 == layers_.size() ? sum : std::max(sum, 0.0);
        }
      }
      kept->x.push_back(std::move(y));
    });
  }

  void backward(std::size_t i, bool add) {
    run([this, kept = kept_, i] {
      const ToyLayer& layer = layers_[i];
      std::ranges::fill(gradient_[i], 0.0F);
      for (std::int64_t row = 0; row < kept->rows; ++row) {
        for (std::int64_t o = 0; o < layer.out; ++o) {
          for (std::int64_t k = 0; k < layer.in; ++k) {
            gradient_[i][at(o * layer.in + k)] +=
                static_cast<float>(kept->dy[i][at(row * layer.out + o)] * kept->x[i][at(row * layer.in + k)]);
          }
        }
      }
    });
    work(communication_);
    copy(fsdp_.scattered().place(bracket(i)).data, gradient_[i].data(), gradient_[i].size());
    if (i > 0) {
      take_weight(i);
      input_gradient(i);
    }
    fsdp_.scattered().final(bracket(i));
    if (tensor_[i] >= 0) bias_gradient(i, add);
  }

  void input_gradient(std::size_t i) {
    run([this, kept = kept_, i] {
      const ToyLayer& layer = layers_[i];
      std::vector<double>& dx = kept->dy[i - 1];
      dx.assign(at(kept->rows * layer.in), 0);
      for (std::int64_t row = 0; row < kept->rows; ++row) {
        for (std::int64_t k = 0; k < layer.in; ++k) {
          if (kept->x[i][at(row * layer.in + k)] <= 0) continue;  // ReLU below
          for (std::int64_t o = 0; o < layer.out; ++o) {
            dx[at(row * layer.in + k)] +=
                kept->dy[i][at(row * layer.out + o)] * static_cast<double>(weight_[i][at(o * layer.in + k)]);
          }
        }
      }
    });
  }

  // After the weight's gradient, so that this one is the last to become final.
  void bias_gradient(std::size_t i, bool add) {
    run([this, kept = kept_, i, add] {
      std::vector<float>& sum = bias_gradient_[i];
      if (!add) std::ranges::fill(sum, 0.0F);
      for (std::size_t k = 0; k < kept->dy[i].size(); ++k) sum[k % sum.size()] += static_cast<float>(kept->dy[i][k]);
    });
    copy(fsdp_.scattered().replicated(tensor_[i]).data, bias_gradient_[i].data(), bias_gradient_[i].size());
    fsdp_.scattered().replicated_final();
  }

  std::vector<ToyLayer> layers_;
  Fsdp& fsdp_;
  Stream compute_, communication_;
  std::vector<int> tensor_;                                                   // by layer; −1: no bias
  std::vector<std::vector<float>> weight_, gradient_, bias_, bias_gradient_;  // of the host, by layer
  std::vector<float> own_weights_, own_gradients_;                            // on their way to and from the shards
  std::vector<std::vector<float>> history_;
  std::shared_ptr<Kept> kept_;
  std::atomic<bool> inexact_ = false;
};

// Where a parameter begins among the network's weights.
std::ptrdiff_t first_weight(const ToyNetwork& network, const std::string& name) {
  for (const OptimizedParameter& one : network.parameters()) {
    if (one.name == name) return one.weight.as<float>() - network.weights().as<float>();
  }
  throw Error(ErrorKind::internal, fmt::format("the certificate's network has no '{}'", name));
}

// Where it begins among the network's gradients.
std::int64_t first_gradient(const GradientPieces& pieces, const std::string& name) {
  int piece = 0;
  while (pieces[piece].name != name) ++piece;
  return pieces.first(piece);
}

// The shards begin with the weights that the network has drawn.
void write_weights(const FsdpCertificateCase& asked, const ToyNetwork& drawn, Fsdp& fsdp) {
  const auto* weights = drawn.weights().as<float>();
  const std::vector<std::vector<ShardedMatrix>> matrices = matrices_of(asked);
  for (std::size_t i = 0, matrix = 0, tensor = 0; i < matrices.size(); ++i) {
    const float* from = weights + first_weight(drawn, weight_name(i));
    for (const ShardedMatrix& one : matrices[i]) {
      fsdp.write(static_cast<int>(matrix++), 0, {from, DType::f32, {one.rows, one.width}});
      from += one.rows * one.width;
    }
    const ToyLayer& layer = asked.asked.model.layers[i];
    if (!layer.bias) continue;
    const float* bias = weights + first_weight(drawn, bias_name(i));
    fsdp.write_replicated(static_cast<int>(tensor++), 0, {bias, DType::f32, {layer.out}});
  }
}

void take_steps(const CertificateCase& asked, const comm::Communicator& ranks, Stream communication, Fsdp& fsdp,
                LentNetwork& network) {
  const std::vector<RowBlock> blocks = asked.rows_of.empty() ? even_blocks(asked.rows, ranks.size()) : asked.rows_of;
  const RowBlock own = blocks[at(ranks.rank())];
  const double scale = 1 / static_cast<double>(asked.rows);
  for (int step = 0; step < asked.steps; ++step) {
    for (int part = 0; part < asked.parts; ++part) {
      network.work(communication);
      fsdp.begin(PassKind::training, part > 0);
      network.pass(certificate_batch(asked, step, part_of(own, part, asked.parts), own), scale, part > 0);
      fsdp.end();
    }
    network.work(communication);
    fsdp.finish();
    network.update(kCertificateRate);
  }
}

// The whole weights, and the gradients of this rank's shards at their places in the network's arena.
Trained trained_shards(const FsdpCertificateCase& asked, int rank, const ToyNetwork& drawn, const LentNetwork& network,
                       Fsdp& fsdp) {
  Trained made{.weights = std::vector<float>(at(drawn.weights().elements())),
               .gradients = {},
               .updated = {},
               .inexact = network.inexact()};
  const GradientPieces& pieces = drawn.pieces();
  made.gradients.assign(network.history().size(), std::vector<float>(at(pieces.elements(0, pieces.size()))));
  const auto take = [&](std::int64_t from, std::int64_t to, std::int64_t count) {  // of the shards; of the arena
    for (std::size_t step = 0; step < made.gradients.size(); ++step) {
      std::copy_n(network.history()[step].begin() + from, count, made.gradients[step].begin() + to);
    }
    made.updated.push_back({to, count});
  };
  const std::vector<std::vector<ShardedMatrix>> matrices = matrices_of(asked);
  for (std::size_t i = 0, matrix = 0; i < matrices.size(); ++i) {
    std::int64_t weight = first_weight(drawn, weight_name(i)), gradient = first_gradient(pieces, weight_name(i));
    for (const ShardedMatrix& one : matrices[i]) {
      const int number = static_cast<int>(matrix++);
      const std::vector<double> whole = fsdp.gather_now(number);
      std::ranges::copy(whole, made.weights.begin() + weight);
      take(fsdp.layout().offset(number), gradient + rank * fsdp.layout().chunk(number),
           fsdp.layout().own_rows(number, rank) * one.width);
      weight += one.rows * one.width;
      gradient += one.rows * one.width;
    }
    const int tensor = network.tensor(i);
    if (tensor < 0) continue;
    std::ranges::copy(fsdp.read_replicated(tensor), made.weights.begin() + first_weight(drawn, bias_name(i)));
    take(fsdp.layout().replicated_offset(tensor), first_gradient(pieces, bias_name(i)),
         asked.asked.model.layers[i].out);
  }
  return made;
}

}  // namespace

FsdpParts parts_of(const FsdpCertificateCase& asked) {
  FsdpParts parts;
  const std::vector<std::vector<ShardedMatrix>> matrices = matrices_of(asked);
  const int layers = static_cast<int>(matrices.size());
  std::vector<FsdpBracket> brackets;
  for (const std::vector<ShardedMatrix>& of : matrices) {
    FsdpBracket& bracket = brackets.emplace_back();
    for (const ShardedMatrix& one : of) {
      bracket.matrices.push_back(static_cast<int>(parts.matrices.size()));
      parts.matrices.push_back(one);
    }
    const std::size_t layer = brackets.size() - 1;
    const ToyLayer& sizes = asked.asked.model.layers[layer];
    if (sizes.bias) parts.replicated.push_back({bias_name(layer), sizes.out});
  }
  parts.brackets.assign(brackets.rbegin(), brackets.rend());  // as their gradients become final
  for (int layer = 0; layer < layers; ++layer) {
    const int bracket = layers - 1 - layer;
    if (layer % asked.layers_of_a_unit == 0) parts.units.emplace_back();
    parts.units.back().push_back(bracket);
    parts.forward_reads.push_back(bracket);
  }
  parts.training_reads = parts.forward_reads;
  for (int bracket = 0; bracket + 1 < layers; ++bracket) parts.training_reads.push_back(bracket);
  return parts;
}

Trained train_sharded(const FsdpCertificateCase& asked, comm::Communicator& ranks, Stream compute,
                      Stream communication) {
  Fsdp fsdp(ranks, parts_of(asked), asked.options, compute, communication);
  ToyNetwork drawn(asked.asked.model, {});
  drawn.draw_dyadic(asked.asked.seed);
  write_weights(asked, drawn, fsdp);
  LentNetwork network(asked, fsdp, compute, communication);
  take_steps(asked.asked, ranks, communication, fsdp, network);
  device::synchronize(communication);
  device::synchronize(compute);
  ranks.throw_if_failed();
  fsdp.check_bytes();
  return trained_shards(asked, ranks.rank(), drawn, network, fsdp);
}

Certified certify_sharded(comm::Communicator& ranks, FsdpOptions options, std::uint64_t seed, Stream compute,
                          Stream communication) {
  constexpr int kModels = 4;
  options.scatter.wire.reset();
  Certified certified;
  for (std::uint64_t number = 0; number < kModels; ++number) {
    FsdpCertificateCase asked{.asked = {.model = drawn_model(seed + number), .seed = seed + number}};
    asked.asked.parts = 1 + static_cast<int>(number % 2);
    asked.asked.model = {.layers = asked.asked.model.layers};
    for (ToyLayer& layer : asked.asked.model.layers) layer = {layer.in, layer.out, layer.bias};
    asked.options = options;
    asked.joined = number % 2 == 1;
    asked.layers_of_a_unit = 1 + static_cast<int>(number / 2);
    const Trained together = train_sharded(asked, ranks, compute, communication);
    const std::optional<std::string> found = difference(asked.asked, together, train_alone(asked.asked));
    for (const std::string& text : ranks.exchange(found.value_or(""))) {
      if (text.empty()) continue;
      throw Error(ErrorKind::check, fmt::format("full sharding over {} ranks ({}) is not equal to one process: {} "
                                                "(model {})",
                                                ranks.size(), ranks.backend(), text, seed + number));
    }
    certified.add(asked.asked, together);
  }
  return certified;
}

}  // namespace syslab::parallel
