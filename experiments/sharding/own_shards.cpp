// Our full sharding behind the door of experiments/ddp/own_ranks.hpp: the chain of layers of
// src/python/syslab_training.py on gathered weights.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/index.hpp"
#include "device/memory.hpp"
#include "device/queue.hpp"
#include "experiments/ddp/own_ranks.hpp"
#include "parallel/fsdp/fsdp.hpp"

namespace syslab {
namespace {

using device::Stream;

struct ChainLayer {
  enum class Kind { embedding, linear, gain };
  Kind kind = Kind::linear;
  std::string name{};
  std::int64_t rows = 1, columns = 1;
  std::int64_t first = 0, batch_first = 0;  // of its elements among all weights', of its numbers in a rank's batch
  int place = 0;                            // among what is sharded, or what is replicated

  std::int64_t count() const { return rows * columns; }
  std::int64_t inputs() const { return kind == Kind::gain ? 0 : kind == Kind::embedding ? 1 : columns; }
  std::int64_t outputs() const { return kind == Kind::embedding ? columns : rows; }
};

std::vector<ChainLayer> layers_of(const Json& asked) {
  std::vector<ChainLayer> made;
  int sharded = 0, replicated = 0;
  std::int64_t first = 0, batch_first = 0;
  for (const Json& one : asked.at("layers")) {
    using Kind = ChainLayer::Kind;
    const std::string kind = one.at("kind");
    ChainLayer layer;
    layer.kind = kind == "gain" ? Kind::gain : kind == "embedding" ? Kind::embedding : Kind::linear;
    layer.name = one.at("name");
    layer.rows = one.at("shape").at(0).get<std::int64_t>();
    if (layer.kind != Kind::gain) layer.columns = one.at("shape").at(1).get<std::int64_t>();
    layer.first = first;
    layer.batch_first = batch_first;
    layer.place = layer.kind == Kind::gain ? replicated++ : sharded++;
    first += layer.count();
    batch_first += layer.inputs() + layer.outputs();
    made.push_back(std::move(layer));
  }
  return made;
}

// A unit for each weight; the backward pass reads them again.
parallel::FsdpParts parts_of(const std::vector<ChainLayer>& layers) {
  parallel::FsdpParts parts;
  for (const ChainLayer& layer : layers) {
    if (layer.kind == ChainLayer::Kind::gain) {
      parts.replicated.push_back({layer.name, layer.rows});
    } else {
      parts.matrices.push_back({layer.name, layer.rows, layer.columns});
    }
  }
  const int matrices = static_cast<int>(parts.matrices.size());
  for (int matrix = matrices; matrix-- > 0;) parts.brackets.push_back({.matrices = {matrix}});
  for (int matrix = 0; matrix < matrices; ++matrix) {
    parts.units.push_back({matrices - 1 - matrix});
    parts.forward_reads.push_back(matrices - 1 - matrix);
  }
  parts.training_reads = parts.forward_reads;
  for (int bracket = 0; bracket < matrices; ++bracket) parts.training_reads.push_back(bracket);
  return parts;
}

class Sharded {
 public:
  Sharded(const OwnTraining& training, comm::Communicator& ranks, Stream compute, Stream communication)
      : training_(training),
        asked_(training.asked),
        ranks_(ranks),
        compute_(compute),
        communication_(communication),
        layers_(layers_of(asked_)),
        fsdp_(std::make_unique<parallel::Fsdp>(
            ranks, parts_of(layers_), parallel::FsdpOptions{.gather = {.poison = true}}, compute, communication)) {
    const ConstTensorView start = training.input("start");
    const float* row = start.as<float>() + ranks.rank() * start.shape[1];
    for (const ChainLayer& layer : layers_) {
      if (layer.kind == ChainLayer::Kind::gain) {
        fsdp_->write_replicated(layer.place, 0, {row + layer.first, DType::f32, {layer.rows}});
      } else {
        fsdp_->write(layer.place, 0, {row + layer.first, DType::f32, {layer.rows, layer.columns}});
      }
    }
    training.of_rank("held", ranks.rank())[0] =
        static_cast<float>(fsdp_->layout().elements() - fsdp_->layout().alignment());
    training.of_rank("events", ranks.rank())[0] = 0;  // its laws look at none
  }
  ~Sharded() {
    drain(compute_);
    fsdp_.reset();
  }
  Sharded(const Sharded&) = delete;
  Sharded& operator=(const Sharded&) = delete;

  void step(int step) {
    outputs_.assign(layers_.size(), {});
    fsdp_->begin(parallel::PassKind::training);
    for (std::size_t i = 0; i < layers_.size(); ++i) forward(i, step);
    for (std::size_t i = layers_.size(); i-- > 0;) backward(i, step);
    fsdp_->end();
    delay_if_late(asked_, communication_);
    fsdp_->finish();
    device::enqueue(compute_, [this] { update(); });
    device::synchronize(compute_);
    gather(step);
  }

 private:
  int bracket(const ChainLayer& layer) const {
    return static_cast<int>(fsdp_->parts().matrices.size()) - 1 - layer.place;
  }

  const float* batch(const ChainLayer& layer, int step) const {
    const ConstTensorView batch = training_.input("batch");  // (steps, ranks, width)
    return batch.as<float>() + (step * batch.shape[1] + ranks_.rank()) * batch.shape[2] + layer.batch_first;
  }

  // Queues `work` on a layer's weight, whole.
  void with_weight(const ChainLayer& layer, std::function<void(const float*)> work) {
    delay_if_late(asked_, communication_);
    const bool gain = layer.kind == ChainLayer::Kind::gain;
    const ConstTensorView lent =
        gain ? ConstTensorView(fsdp_->replicated(layer.place)) : fsdp_->gathered().read(bracket(layer));
    device::enqueue(compute_, [work = std::move(work), from = lent.as<float>()] { work(from); });
    if (!gain) fsdp_->gathered().done(bracket(layer));
  }

  void forward(std::size_t i, int step) {
    const ChainLayer& layer = layers_[i];
    with_weight(layer, [this, i, &layer, x = batch(layer, step)](const float* weight) {
      std::vector<float>& y = outputs_[i];
      if (layer.kind == ChainLayer::Kind::embedding) {
        const float* row = weight + static_cast<std::int64_t>(x[0]) * layer.columns;
        y.assign(row, row + layer.columns);
      } else {
        for (std::int64_t row = 0; row < layer.rows; ++row) {
          float sum = 0;
          for (std::int64_t k = 0; k < layer.columns; ++k)
            sum += weight[row * layer.columns + k] * (layer.inputs() > 0 ? x[k] : 1);
          y.push_back(sum);
        }
      }
    });
  }

  void backward(std::size_t i, int step) {
    const ChainLayer& layer = layers_[i];
    const bool gain = layer.kind == ChainLayer::Kind::gain;
    // What a layer below would be sent is times zero; the weight is read for it all the same.
    if (!gain) with_weight(layer, [](const float*) {});
    delay_if_late(asked_, communication_);
    const TensorView place =
        gain ? fsdp_->scattered().replicated(layer.place) : fsdp_->scattered().place(bracket(layer));
    device::enqueue(compute_, [this, i, &layer, x = batch(layer, step), to = place.as<float>()] {
      const auto curve = asked_.at("curve").get<float>();
      const float* c = x + layer.inputs();
      const auto slope = [&](std::int64_t output) {
        return (c[output] + curve * outputs_[i][at(output)]) / static_cast<float>(ranks_.size());
      };
      std::fill_n(to, layer.count(), 0.0F);
      for (std::int64_t output = 0; output < layer.outputs(); ++output) {
        if (layer.kind == ChainLayer::Kind::embedding) {
          to[static_cast<std::int64_t>(x[0]) * layer.columns + output] = slope(output);
          continue;
        }
        for (std::int64_t k = 0; k < layer.columns; ++k) {
          to[output * layer.columns + k] = slope(output) * (layer.inputs() > 0 ? x[k] : 1);
        }
      }
    });
    if (gain) {
      fsdp_->scattered().replicated_final();
    } else {
      fsdp_->scattered().final(bracket(layer));
    }
  }

  void update() {
    const auto rate = asked_.at("rate").get<float>();
    auto* weights = fsdp_->weights().as<float>();
    const auto* gradients = fsdp_->gradients().as<float>();
    for (std::int64_t i = 0; i < fsdp_->layout().elements(); ++i) weights[i] -= rate * gradients[i];
  }

  void gather(int step) {
    const std::int64_t total = layers_.back().first + layers_.back().count();
    const std::span<float> weights = training_.of_rank("weights", ranks_.rank()).subspan(at(step * total));
    for (const ChainLayer& layer : layers_) {
      const std::vector<double> whole =
          layer.kind == ChainLayer::Kind::gain ? fsdp_->read_replicated(layer.place) : fsdp_->gather_now(layer.place);
      std::ranges::copy(whole, weights.begin() + layer.first);
    }
  }

  const OwnTraining& training_;
  const Json& asked_;
  comm::Communicator& ranks_;
  Stream compute_, communication_;
  std::vector<ChainLayer> layers_;
  std::vector<std::vector<float>> outputs_;  // of a step, by layer
  std::unique_ptr<parallel::Fsdp> fsdp_;
};

}  // namespace

TrainOwn train_fully_sharded() {
  return [](const OwnTraining& training, comm::Communicator& ranks, Stream compute, Stream communication) {
    Sharded sharded(training, ranks, compute, communication);
    const int steps = training.asked.at("steps").get<int>();
    for (int step = 0; step < steps; ++step) sharded.step(step);
  };
}

}  // namespace syslab
