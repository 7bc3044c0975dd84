// A tiny model with weights that are the same in every precision, and a batch for it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "model/transformer.hpp"
#include "tests/model/plain_transformer.hpp"

namespace syslab::model {

inline ModelConfig tiny_config() {
  ModelConfig config;
  config.vocab = 101;
  config.context = 40;
  config.d_model = 64;
  config.d_ff = 128;
  config.layers = 2;
  config.heads = 4;
  return config;
}

// Normal numbers of deviation 1/√columns (norms: around 1), by name, exact in bf16 so that no precision rounds them.
inline std::vector<double> weights_of(const ParameterInfo& info, std::uint64_t seed = 1) {
  const RandomStream random = RandomStream::derive(seed, "model_fixture", info.name, "weights");
  const bool is_norm = info.kind == ParameterKind::norm;
  const double scale = is_norm ? 0.2 : 1 / std::sqrt(static_cast<double>(info.shape[1]));
  std::vector<double> values(static_cast<std::size_t>(info.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = to_float(to_bf16(static_cast<float>((is_norm ? 1.0 : 0.0) + scale * random.normal(i))));
  }
  return values;
}

inline void set_weights(Transformer& model, std::uint64_t seed = 1) {
  const ParameterLayout& layout = model.parameters().layout();
  for (int i = 0; i < layout.size(); ++i) {
    const std::vector<double> values = weights_of(layout.info(i), seed);
    model.parameters().write(Plane::weight, i, 0, {values.data(), DType::f64, layout.info(i).shape});
  }
}

struct Sequences {
  std::int64_t batch = 2, seq = 32;
  std::vector<std::int64_t> ids, targets;
};

inline Sequences random_sequences(const ModelConfig& config, std::int64_t batch, std::int64_t seq,
                                  std::uint64_t seed = 7) {
  const RandomStream random(seed);
  Sequences made{batch, seq, {}, {}};
  for (std::int64_t i = 0; i < batch * seq; ++i) {
    made.ids.push_back(random.bits(static_cast<std::uint64_t>(2 * i)) % config.vocab);
    made.targets.push_back(random.bits(static_cast<std::uint64_t>(2 * i + 1)) % config.vocab);
  }
  return made;
}

// The same in the memory of the model's device.
class Uploaded {
 public:
  Uploaded(const Sequences& sequences, device::Stream stream)
      : buffer_(2 * sequences.ids.size() * sizeof(std::int64_t), "tokens", stream),
        tokens_{buffer_.as<std::int64_t>(), sequences.batch, sequences.seq} {
    const std::size_t bytes = sequences.ids.size() * sizeof(std::int64_t);
    device::copy_now(buffer_.data(), sequences.ids.data(), bytes, stream);
    device::copy_now(buffer_.as<std::byte>() + bytes, sequences.targets.data(), bytes, stream);
  }
  const Tokens& tokens() const { return tokens_; }
  const std::int64_t* targets() const { return tokens_.ids + tokens_.count(); }

 private:
  device::Buffer buffer_;
  Tokens tokens_;
};

// A scalar of 1 in the memory of the model's device.
inline Tensor one(const Transformer& model) {
  Tensor scale({"scale", model.dtypes().statistics, {1}}, model.stream(), device::MemoryCategory::other);
  const double f64 = 1;
  const float f32 = 1;
  const bool wide = model.dtypes().statistics == DType::f64;
  device::copy_now(scale.view().data, wide ? static_cast<const void*>(&f64) : &f32, wide ? 8 : 4, model.stream());
  return scale;
}

// Loss, logits and all gradients of one forward and backward pass.
struct Outcome {
  double loss = 0;
  std::vector<double> logits;
  std::map<std::string, std::vector<double>> gradients;
};

inline Outcome outcome_of(Transformer& model, const Sequences& sequences, const BackwardOptions& options = {}) {
  const Uploaded batch(sequences, model.stream());
  Outcome outcome;
  Activations kept = model.forward(batch.tokens());
  outcome.logits = values_of(kept.logits, model.stream());
  model.loss_and_gradient(kept, batch.targets(), one(model));
  outcome.loss = values_of(kept.loss, model.stream()).front();
  model.backward(std::move(kept), options);
  const ParameterLayout& layout = model.parameters().layout();
  for (int i = 0; i < layout.size(); ++i) {
    outcome.gradients[layout.info(i).name] = model.parameters().read(Plane::gradient, i);
  }
  return outcome;
}

// ‖a − b‖ / ‖b‖
inline double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double distance = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    distance += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(distance / norm);
}

}  // namespace syslab::model
