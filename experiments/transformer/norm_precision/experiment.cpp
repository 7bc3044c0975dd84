// norm_precision: the statistics of layer norm and RMSNorm in half precision, on data of growing magnitude; the
// question is in README.md in this folder. Nothing is timed.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/norm_statistics/norm_statistics.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::experiment_norm_precision {
namespace {

using norm_statistics::Norm;
using norm_statistics::Problem;
using norm_statistics::Sum;
using registry::Need;
using registry::number;
using registry::text;

constexpr std::int64_t kRows = 16;

Problem problem_from(const worker::CaseContext& context) {
  const Params& params = context.params();
  const DType data = parse_dtype(params.text("dtype")).value();
  return {.norm = params.text("norm") == "layer_norm" ? Norm::layer_norm : Norm::rms_norm,
          .sum = context.request().implementation == "sequential" ? Sum::sequential : Sum::pairwise,
          .format = params.text("statistics") == "data" ? data : DType::f32};
}

// A row of data: 2^exponent · (offset + normal), rounded to the data's type.
std::vector<double> row_of(const worker::CaseContext& context, const RandomStream& stream, std::int64_t row) {
  const Params& params = context.params();
  const DType data = parse_dtype(params.text("dtype")).value();
  const std::int64_t dim = params.integer("dim");
  const double scale = std::ldexp(1.0, static_cast<int>(params.integer("exponent")));
  const auto offset = static_cast<double>(params.integer("offset"));
  std::vector<double> x;
  for (std::int64_t i = 0; i < dim; ++i) {
    const double value =
        scale * (offset + static_cast<double>(stream.normal(static_cast<std::uint64_t>(row * dim + i))));
    const auto single = static_cast<float>(value);
    x.push_back(data == DType::f16    ? to_float(to_f16(single))
                : data == DType::bf16 ? to_float(to_bf16(single))
                                      : single);
  }
  return x;
}

struct Found {
  std::int64_t finite_rows = 0, unexplained = 0;
  double error_statistic = 0, bound = 0;  // of the row with the largest error relative to its bound
  double error_rstd = 0, error_out = 0;
};

// The first sum that is computed: of x for layer norm, of x² for RMSNorm. Its error has a bound that holds for any
// data.
void look(const Problem& problem, const std::vector<double>& x, Found& found) {
  Problem exact_problem = problem;
  exact_problem.format = DType::f64;
  const auto exact = norm_statistics::normalise(exact_problem, x), made = norm_statistics::normalise(problem, x);
  double absolute = 0, squares = 0;
  const double mean = exact.statistics.mean;
  for (const double v : x)
    absolute += std::abs(v), squares += (std::abs(v) + std::abs(mean)) * (std::abs(v) + std::abs(mean));
  const auto n = static_cast<double>(x.size());
  const double u = unit_roundoff(problem.format);
  const double growth =
      (1 + norm_statistics::sum_error_bound(problem, static_cast<std::int64_t>(x.size()))) * std::pow(1 + u, 3);

  const bool finite =
      std::isfinite(made.statistics.square) && std::ranges::all_of(made.y, [](double v) { return std::isfinite(v); });
  if (!finite || made.statistics.rstd == 0) {
    // A sum can overflow only if the exact sum comes near the largest number.
    if (std::max(absolute, squares) * growth < norm_statistics::largest(problem.format)) ++found.unexplained;
    return;
  }
  ++found.finite_rows;
  const bool layer = problem.norm == Norm::layer_norm;
  const double error =
      layer ? std::abs(made.statistics.mean - mean) : std::abs(made.statistics.square - exact.statistics.square);
  // Below the normal numbers the error of a product or a quotient is half a step of the format, whatever its size.
  const double half_step = smallest_normal(problem.format) * u;
  const double bound = (growth - 1) * (layer ? absolute : squares) / n + growth * 2 * half_step;
  if (found.bound == 0 || error / bound > found.error_statistic / found.bound) {
    found.error_statistic = error;
    found.bound = bound;
  }
  found.error_rstd = std::max(found.error_rstd, std::abs(made.statistics.rstd / exact.statistics.rstd - 1));
  double worst = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    worst += (made.y[i] - exact.y[i]) * (made.y[i] - exact.y[i]);
    norm += exact.y[i] * exact.y[i];
  }
  found.error_out = std::max(found.error_out, std::sqrt(worst / norm));
}

void run_case(worker::CaseContext& context) {
  const Problem problem = problem_from(context);
  if (context.params().integer("dim") < 1) throw Error(ErrorKind::usage, "dim must be at least 1");
  const RandomStream stream = context.stream("x");
  Found found;
  for (std::int64_t row = 0; row < kRows; ++row) look(problem, row_of(context, stream, row), found);

  const bool layer = problem.norm == Norm::layer_norm;
  worker::CheckRecord check;
  check.name = layer ? "reference:mean" : "reference:mean_square";
  check.cases_run = kRows;
  check.worst_error = found.error_statistic;
  check.tolerance = found.bound;
  check.fraction_checked = static_cast<double>(found.finite_rows) / static_cast<double>(kRows);
  const bool passed = found.error_statistic <= found.bound && found.unexplained == 0;
  check.outcome = passed ? Outcome::passed : Outcome::falsified;
  check.message = std::to_string(kRows - found.finite_rows) + " of " + std::to_string(kRows) + " rows overflow, " +
                  std::to_string(found.unexplained) + " of them without need; the others are held against their bound";
  context.emit(check);
  if (!passed) throw worker::CheckFailed(check.message);

  context.metric("finite_rows", "1", static_cast<double>(found.finite_rows));
  if (found.finite_rows == 0) {
    const char* why = "every row overflows";
    context.missing_metric("error_rstd", "1", why);
    return context.missing_metric("error_out", "1", why);
  }
  context.metric("error_rstd", "1", found.error_rstd);
  context.metric("error_out", "1", found.error_out);
}

registry::Experiment describe() {
  return registry::experiment("norm_precision")
      .title("Normalization statistics in half precision")
      .question(
          "What do mean, variance and 1/√(variance + eps) of layer norm and RMSNorm become in fp16 and bf16 as data "
          "grow, and what changes when they alone are kept in fp32?")
      .tags({"precision"})
      .evidence({.problem = "benchmarking_mixed_precision", .parts = {"b"}, .preset = "paper", .coarse = true})
      .evidence({.need = Need::asked, .problem = "benchmarking_mixed_precision", .parts = {"b"}, .preset = "paper"})
      .closed_axis("norm", {text("layer_norm"), text("rms_norm")}, "whether a mean is taken off first")
      .closed_axis("dtype", {text("fp16"), text("bf16")}, "of the data", {text("fp32")})
      .closed_axis("statistics", {text("data"), text("fp32")},
                   "in which every operation is done: the data's dtype, or fp32")
      .axis("exponent", {number(-10), number(0), number(3), number(6), number(8), number(12)},
            "data have the standard deviation 2^exponent")
      .axis("offset", {number(0), number(16)}, "mean of the data, in standard deviations")
      .axis("dim", {number(1024)}, "elements of a row")
      .preset("smoke", {{"dim", {number(256)}}})
      .preset("laptop", {})
      .preset("paper", {{"dim", {number(768), number(2560)}}})
      .implementation({.name = "sequential", .teaches = "one accumulator: every addition rounds the whole sum"})
      .implementation({.name = "pairwise", .teaches = "a tree, as a GPU's reduction: ⌈log2 n⌉ roundings deep"})
      .metric("finite_rows", "1", "rows of 16 in which nothing overflowed")
      .metric("error_rstd", "1", "relative error of 1/√(…+eps), the worst of those rows")
      .metric("error_out", "1", "‖y − exact‖ / ‖exact‖, the worst of those rows")
      .runs(run_case);
}

SYSLAB_EXPERIMENT(norm_precision, describe);

}  // namespace
}  // namespace syslab::experiment_norm_precision
