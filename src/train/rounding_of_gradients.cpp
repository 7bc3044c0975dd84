#include "train/rounding_of_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "ops/attention/error_bound.hpp"

namespace syslab::train {
namespace {

double norm_of(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

bool has_a_token_a_row(const model::ParameterLayout& layout, int parameter) {
  return parameter == layout.embedding() || parameter == layout.lm_head();
}

// By parameter, what attention leaves of the gradients of Q and K.
std::vector<double> of_attention(const model::ParameterLayout& layout, const ExactPass& exact,
                                 const model::DTypes& dtypes, const model::Tolerance& tolerance) {
  std::vector<double> made(static_cast<std::size_t>(layout.size()), 0.0);
  const model::ModelConfig& config = layout.config();
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const model::LayerIndices index = layout.layer(layer);
    model::QueryArithmetic arithmetic = model::query_arithmetic(config, layer, dtypes, tolerance);
    arithmetic.input = model::largest_norm(exact.weights[static_cast<std::size_t>(index.ln1)]);
    const model::QueryRounding rounding =
        model::rounding_of_queries(exact.queries[static_cast<std::size_t>(config.layers - 1 - layer)], arithmetic);
    made[static_cast<std::size_t>(index.q)] = rounding.queries;
    made[static_cast<std::size_t>(index.k)] = rounding.keys;
  }
  return made;
}

}  // namespace

double rounding_of_passes(const model::ModelConfig& config, const model::TransformerOptions& options, int passes,
                          std::int64_t positions) {
  const model::DTypes dtypes = model::dtypes_of(options.precision, options.variant);
  const auto units = attention::ErrorModel::of(dtypes.product, dtypes.math == device::GemmMath::tf32);
  // The head's sums over the vocabulary are of the way back.
  const auto terms =
      static_cast<double>(passes == 1 ? std::max({config.d_model, config.d_ff, config.context})
                                      : std::max({config.d_model, config.d_ff, config.vocab, positions}));
  const double once = std::hypot(std::sqrt(terms) * units.unit, units.cast_unit, units.factor_unit);
  return attention::kLambda * std::sqrt(passes * model::roundings_of(config.layers)) * once;
}

ByParameter rounding_of_gradients(const model::ParameterLayout& layout, const ExactPass& exact,
                                  const model::TransformerOptions& options) {
  const model::ModelConfig& config = layout.config();
  const model::DTypes dtypes = model::dtypes_of(options.precision, options.variant);
  const auto units = attention::ErrorModel::of(dtypes.product, dtypes.math == device::GemmMath::tf32);
  const double relative = rounding_of_passes(config, options, 2, exact.positions);
  const std::vector<double> attention =
      of_attention(layout, exact, dtypes, model::tolerance_of(options.precision, config.layers));

  std::vector<double> norms;
  for (const std::vector<double>& gradient : exact.gradients) norms.push_back(norm_of(gradient));
  const std::vector<bool> vanishing = model::vanishing(layout, norms);
  const bool everywhere = units.cast_unit == 0 && units.factor_unit == 0;
  ByParameter made;
  for (int i = 0; i < layout.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::span gradient(exact.gradients[at]), of_targets(exact.of_targets[at]);
    const auto rows = static_cast<std::size_t>(has_a_token_a_row(layout, i) ? config.vocab : 1);
    const std::size_t count = gradient.size() / rows;
    std::vector<double>& rounding = made.emplace_back(rows, 0.0);
    if (!everywhere && !vanishing[at]) continue;
    for (std::size_t row = 0; row < rows; ++row) {
      const double norm =
          std::max(norm_of(gradient.subspan(row * count, count)), norm_of(of_targets.subspan(row * count, count)));
      rounding[row] = (relative * norm + attention[at]) / std::sqrt(static_cast<double>(count));
    }
  }
  return made;
}

}  // namespace syslab::train
