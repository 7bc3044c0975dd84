#include "model/vanishing_queries.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ops/attention/error_bound.hpp"

namespace syslab::model {
namespace {

const double* row_of(const ConstTensorView& view, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return static_cast<const double*>(view.data) + batch * view.stride(0) + head * view.stride(1) + row * view.stride(2);
}

double norm_of(const double* row, std::int64_t dim) {
  double squares = 0;
  for (std::int64_t d = 0; d < dim; ++d) squares += row[d] * row[d];
  return std::sqrt(squares);
}

std::vector<QueryRow> rows_of(const attention::Problem& problem, const attention::BackwardArgs& args) {
  std::vector<QueryRow> rows;
  const std::int64_t dim = problem.head_dim, group = problem.heads_q / problem.heads_kv;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.heads_q; ++h) {
      for (std::int64_t i = 0; i < problem.seq_q; ++i) {
        const double* const given = row_of(args.dout, b, h, i);
        QueryRow made{.query = norm_of(row_of(args.q, b, h, i), dim)};
        for (std::int64_t j = 0; j < problem.visible_keys(i); ++j) {
          const double* const value = row_of(args.v, b, h / group, j);
          double sum = 0, absolute = 0, squares = 0;
          for (std::int64_t d = 0; d < dim; ++d) {
            const double product = given[d] * value[d];
            sum += product, absolute += std::abs(product), squares += product * product;
          }
          made.products = std::max(made.products, absolute);
          made.spread = std::max(made.spread, std::sqrt(sum * sum + squares));
          made.key = std::max(made.key, norm_of(row_of(args.k, b, h / group, j), dim));
        }
        rows.push_back(made);
      }
    }
  }
  return rows;
}

}  // namespace

std::function<void(Kernels&)> recording_queries(QueryRows& rows) {
  return [&rows](Kernels& kernels) {
    kernels.attention.backward = [&rows, right = kernels.attention.backward](
                                     const attention::Problem& problem, const attention::BackwardArgs& args,
                                     const attention::Saved& saved, ops::Workspace workspace, device::Stream stream) {
      rows.push_back(rows_of(problem, args));
      right(problem, args, saved, workspace, stream);
    };
  };
}

QueryRounding rounding_of_queries(const std::vector<QueryRow>& rows, const QueryArithmetic& arithmetic) {
  const bool tf32 = arithmetic.dtypes.math == device::GemmMath::tf32;
  const auto units = attention::ErrorModel::of(arithmetic.dtypes.product, tf32);
  const auto dim = static_cast<double>(arithmetic.head_dim), keys = static_cast<double>(arithmetic.keys);
  const double sums = 2 * units.g(dim + 2 * keys + 8) + 3 * units.factor_unit;
  const double values = arithmetic.keys > 1 ? arithmetic.values : 0;
  const double scale = 1 / std::sqrt(dim), stored = 2 * std::sqrt(dim) * units.storage_tiny;
  double queries = 0, of_keys = 0;
  for (const QueryRow& row : rows) {
    const double x = arithmetic.of_gradient * (sums * row.products + values * row.spread) + units.cast_tiny;
    const double dq = scale * x * row.key + stored, dk = scale * x * row.query + stored;
    queries += dq * dq, of_keys += dk * dk;
  }
  return {arithmetic.input * std::sqrt(queries), arithmetic.input * std::sqrt(of_keys)};
}

}  // namespace syslab::model
