#include "model/against_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/random.hpp"
#include "device/memory.hpp"
#include "model/vanishing_queries.hpp"

namespace syslab::model {
namespace {

// Normal weights of deviation 1/√columns, norms around 1, exact in bf16 (fp16 has more digits and their range).
std::vector<double> weights_for(const ParameterInfo& info, std::uint64_t seed) {
  const RandomStream random = RandomStream::derive(seed, "against_reference", info.name, "weights");
  const bool is_norm = info.kind == ParameterKind::norm;
  const double scale = is_norm ? 0.1 : 1 / std::sqrt(static_cast<double>(info.shape[1]));
  std::vector<double> values(static_cast<std::size_t>(info.shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = to_float(to_bf16(static_cast<float>((is_norm ? 1.0 : 0.0) + scale * random.normal(i))));
  }
  return values;
}

struct Batch {
  std::int64_t batch = 2, seq = 0;
  std::vector<std::int64_t> ids, targets;
};

Batch batch_for(const ModelConfig& config, std::uint64_t seed) {
  const RandomStream random = RandomStream::derive(seed, "against_reference", "batch", "ids");
  Batch made;
  made.seq = config.context;
  const auto vocab = static_cast<std::uint32_t>(config.vocab);
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(made.batch * made.seq); ++i) {
    made.ids.push_back(random.bits(2 * i) % vocab);
    made.targets.push_back(random.bits(2 * i + 1) % vocab);
  }
  return made;
}

struct Outcome {
  std::vector<double> logits, loss;
  std::vector<std::vector<double>> gradients;  // by registration order
  std::vector<double> normalized;              // what the LM head reads
  QueryRows queries;                           // of the reference: what its attention was given
};

// The start of the backward pass: the loss's gradient, or only its term of the target's class. The latter in fp64, on
// the CPU.
enum class Begins { loss, targets };

Outcome run(const ModelConfig& config, TransformerOptions options, device::Stream stream, std::uint64_t seed,
            Begins begins = Begins::loss) {
  options.with_gradients = true;
  options.with_moments = false;
  Outcome outcome;
  if (options.precision == Precision::fp64 && !options.plant) options.plant = recording_queries(outcome.queries);
  Transformer model(config, options, stream);
  const ParameterLayout& layout = model.parameters().layout();
  for (int i = 0; i < layout.size(); ++i) {
    const std::vector<double> values = weights_for(layout.info(i), seed);
    model.parameters().write(Plane::weight, i, 0, {values.data(), DType::f64, layout.info(i).shape});
  }
  const Batch batch = batch_for(config, seed);
  const std::size_t bytes = batch.ids.size() * sizeof(std::int64_t);
  const device::Buffer tokens(2 * bytes, "tokens", stream, device::MemoryCategory::input);
  device::copy_now(tokens.data(), batch.ids.data(), bytes, stream);
  device::copy_now(tokens.as<std::byte>() + bytes, batch.targets.data(), bytes, stream);

  const Watching watching(model, [&](const std::string& name, const ConstTensorView& tensor) {
    if (name == "ln_final.normalized") outcome.normalized = values_of(tensor, stream);
  });
  const auto* ids = tokens.as<std::int64_t>();
  Activations kept = model.forward({ids, batch.batch, batch.seq});
  outcome.logits = values_of(kept.logits, stream);
  model.loss_and_gradient(kept, ids + batch.ids.size(), {});
  outcome.loss = values_of(kept.loss, stream);
  if (begins == Begins::targets) leave_targets(kept.logits, batch.targets);
  model.backward(std::move(kept), {});
  for (int i = 0; i < layout.size(); ++i) outcome.gradients.push_back(model.parameters().read(Plane::gradient, i));
  return outcome;
}

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

double distance(const std::vector<double>& found, const std::vector<double>& expected, double size) {
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
  }
  return difference == 0 ? 0 : std::sqrt(difference) / size;
}

// √Σ(x·w)² over all products that logits are sums of, from the squares of the columns of x and w.
double size_of_logit_terms(const Outcome& exact, const ModelConfig& config, std::uint64_t seed) {
  const ParameterLayout layout(config);
  const std::vector<double> w = weights_for(layout.info(layout.lm_head()), seed);
  const auto squares = [&](const std::vector<double>& matrix, std::int64_t column) {
    double sum = 0;
    for (auto i = static_cast<std::size_t>(column); i < matrix.size(); i += static_cast<std::size_t>(config.d_model)) {
      sum += matrix[i] * matrix[i];
    }
    return sum;
  };
  double sum = 0;
  for (std::int64_t column = 0; column < config.d_model; ++column) {
    sum += squares(exact.normalized, column) * squares(w, column);
  }
  return std::sqrt(sum);
}

// ε of the header.
double rounding_of_loss(const Outcome& exact, const ModelConfig& config, DType computed_in) {
  double largest = 0;
  for (const double logit : exact.logits) largest = std::max(largest, std::abs(logit));
  return 16 * unit_roundoff(computed_in) * (1 + largest + std::log(static_cast<double>(config.vocab)));
}

// Whether the gradient of a Q or K is negligible compared with that of its V.
bool vanishes(const std::vector<double>& norms, int one, int values) {
  constexpr double kNothing = 1e-9;
  return norms[static_cast<std::size_t>(one)] <= kNothing * norms[static_cast<std::size_t>(values)];
}

struct Allowed {
  Tolerance tolerance;
  DTypes dtypes;
  double of_loss = 0;  // ε of the header
};

// By parameter, what differences of gradients are relative to.
std::vector<double> sizes_of_gradients(const Outcome& exact, const ModelConfig& config, std::uint64_t seed,
                                       const Allowed& allowed) {
  const ParameterLayout layout(config);
  std::vector<double> sizes;
  for (const std::vector<double>& gradient : exact.gradients) sizes.push_back(norm_of(gradient));
  QueryRows queries = exact.queries;
  double of_gradient = 1;
  if (config.vocab == 1) {
    const Outcome targets = run(config, {.precision = Precision::fp64}, {}, seed, Begins::targets);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = std::max(sizes[i], allowed.of_loss / allowed.tolerance.gradients * norm_of(targets.gradients[i]));
    }
    queries = targets.queries;
    of_gradient = allowed.of_loss;
  }
  const std::vector<double> before = sizes;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    QueryArithmetic arithmetic = query_arithmetic(config, layer, allowed.dtypes, allowed.tolerance);
    arithmetic.input = largest_norm(weights_for(layout.info(layout.layer(layer).ln1), seed));
    arithmetic.of_gradient = of_gradient;
    const QueryRounding rounding =
        rounding_of_queries(queries[static_cast<std::size_t>(config.layers - 1 - layer)], arithmetic);
    const LayerIndices index = layout.layer(layer);
    const auto hold = [&](int one, double found) {
      if (vanishes(before, one, index.v)) {
        sizes[static_cast<std::size_t>(one)] = found / allowed.tolerance.gradients;
      }
    };
    hold(index.q, rounding.queries);
    hold(index.k, rounding.keys);
  }
  return sizes;
}

}  // namespace

double roundings_of(std::int64_t layers) { return 12 * static_cast<double>(layers) + 2; }

QueryArithmetic query_arithmetic(const ModelConfig& config, std::int64_t layer, const DTypes& dtypes,
                                 const Tolerance& tolerance) {
  // The part of all roundings of a pass that happens up to this layer's attention.
  const double rounded = (12 * static_cast<double>(layer) + 6) / roundings_of(config.layers);
  return {.dtypes = dtypes,
          .values = tolerance.logits * std::sqrt(rounded),
          .keys = config.context,
          .head_dim = config.head_dim()};
}

double largest_norm(const std::vector<double>& gains) {
  double largest = 0;
  for (const double gain : gains) largest = std::max(largest, std::abs(gain));
  return largest * std::sqrt(static_cast<double>(gains.size()));
}

void leave_targets(const TensorView& dlogits, const std::vector<std::int64_t>& targets) {
  const std::int64_t rows = dlogits.size(0), classes = dlogits.size(1);
  double* const gradient = dlogits.as<double>();
  std::fill_n(gradient, rows * classes, 0.0);
  for (std::int64_t row = 0; row < rows; ++row) {
    gradient[row * classes + targets[static_cast<std::size_t>(row)]] = -1 / static_cast<double>(rows);
  }
}

Tolerance tolerance_of(Precision precision, std::int64_t layers) {
  const auto rounded = [layers](DType dtype) {
    const double once = roundings_of(layers), u = unit_roundoff(dtype);
    return Tolerance{std::sqrt(once) * u, std::sqrt(2 * once) * u};
  };
  switch (precision) {
    case Precision::fp64:
      return {1e-13, 1e-12};
    case Precision::fp32:
      return {1e-5, 1e-4};
    case Precision::tf32:
      return {1e-2, 1e-2};
    case Precision::fp16_amp:
      return rounded(DType::f16);
    case Precision::bf16_amp:
    case Precision::bf16_fused:
      return rounded(DType::bf16);
  }
  return {};
}

ModelConfig reduced(const ModelConfig& config) {
  ModelConfig small = config;
  small.heads = std::min<std::int64_t>(config.heads, 2);
  small.d_model = small.heads * config.head_dim();
  small.d_ff = std::min(config.d_ff, 2 * small.d_model);
  small.layers = std::min<std::int64_t>(config.layers, 2);
  small.vocab = std::min<std::int64_t>(config.vocab, 997);
  small.context = std::min<std::int64_t>(config.context, 48);
  return small;
}

std::vector<bool> vanishing(const ParameterLayout& layout, const std::vector<double>& norms) {
  std::vector<bool> made(norms.size(), layout.config().vocab == 1);
  for (std::int64_t layer = 0; layer < layout.config().layers; ++layer) {
    const LayerIndices index = layout.layer(layer);
    for (const int one : {index.q, index.k}) {
      if (vanishes(norms, one, index.v)) made[static_cast<std::size_t>(one)] = true;
    }
  }
  return made;
}

std::vector<StepCheck> against_reference(const ModelConfig& config, const TransformerOptions& options,
                                         device::Stream stream, std::uint64_t seed) {
  const ModelConfig small = reduced(config);
  const Outcome expected = run(small, {.precision = Precision::fp64}, {}, seed);
  const Outcome found = run(small, options, stream, seed);
  const Tolerance allowed = tolerance_of(options.precision, small.layers);
  const std::string on =
      fmt::format("{} in {}, {}", to_string(small), to_string(options.precision), to_string(options.variant));
  const ParameterLayout layout(small);
  const DTypes dtypes = dtypes_of(options.precision, options.variant);
  const double of_loss = rounding_of_loss(expected, small, dtypes.statistics);
  const std::vector<double> sizes = sizes_of_gradients(expected, small, seed, {allowed, dtypes, of_loss});
  StepCheck worst{"gradients", -1, allowed.gradients, on};
  for (int i = 0; i < layout.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double error = distance(found.gradients[at], expected.gradients[at], sizes[at]);
    if (error <= worst.error) continue;  // a NaN is worse than anything
    worst.error = error;
    worst.message = fmt::format("worst in {}; {}", layout.info(i).name, on);
    if (std::isnan(error)) break;
  }
  const double of_logits = std::max(norm_of(expected.logits), size_of_logit_terms(expected, small, seed)),
               loss = std::max(std::abs(expected.loss.front()), of_loss / allowed.logits);
  return {{"logits", distance(found.logits, expected.logits, of_logits), allowed.logits, on},
          {"loss", distance(found.loss, expected.loss, loss), allowed.logits, on},
          worst};
}

}  // namespace syslab::model
