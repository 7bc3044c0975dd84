#include "ops/attention/oracle/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "device/parallel.hpp"
#include "ops/attention/error_bound.hpp"
#include "ops/attention/rows.hpp"

namespace syslab::attention {

namespace {

using Doubles = std::vector<double>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

double norm(const double* row, std::int64_t length) {
  double sum = 0;
  for (std::int64_t d = 0; d < length; ++d) sum += row[d] * row[d];
  return std::sqrt(sum);
}

// One (batch, head) of a tensor in double, rows contiguous; `turned` holds its transpose, so that the loop over keys is
// the inner one and needs no sum across vector lanes.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  Doubles straight, turned;
  const double* row(std::int64_t i) const { return straight.data() + i * columns; }
};

Matrix load(const ConstTensorView& view, std::int64_t batch, std::int64_t head, bool with_turned) {
  Matrix matrix{view.size(2), view.size(3), {}, {}};
  matrix.straight.resize(at(matrix.rows * matrix.columns));
  with_storage(view.dtype, [&]<typename T>(T) {
    for (std::int64_t i = 0; i < matrix.rows; ++i) {
      const T* row = row_of<T>(view, batch, head, i);
      for (std::int64_t d = 0; d < matrix.columns; ++d) matrix.straight[at(i * matrix.columns + d)] = to_double(row[d]);
    }
  });
  if (!with_turned) return matrix;
  matrix.turned.resize(matrix.straight.size());
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    for (std::int64_t d = 0; d < matrix.columns; ++d) matrix.turned[at(d * matrix.rows + i)] = matrix.row(i)[d];
  }
  return matrix;
}

// products[j] = factor · row · other[first + j], j < count.
void products_with_rows(const double* row, const Matrix& other, double factor, std::int64_t first, std::int64_t count,
                        double* products) {
  std::fill_n(products, count, 0.0);
  for (std::int64_t d = 0; d < other.columns; ++d) {
    const double* column = other.turned.data() + d * other.rows + first;
    const double value = factor * row[d];
    for (std::int64_t j = 0; j < count; ++j) products[j] += value * column[j];
  }
}

// A sum over a reduction with what its error bound needs.
struct Sums {
  explicit Sums(std::int64_t length) : value(at(length)), squares(at(length)), prefix(at(length)) {}
  // Adds factor·row; `error` is the error of the factor, absolute.
  void add(double factor, double error, const double* row) {
    double* v = value.data();
    double* s = squares.data();
    double* p = prefix.data();
    const auto length = static_cast<std::int64_t>(value.size());
    for (std::int64_t d = 0; d < length; ++d) {
      const double sum = v[d] + factor * row[d], wrong = error * row[d], size = std::abs(sum);
      v[d] = sum;
      s[d] += wrong * wrong;
      p[d] = size > p[d] ? size : p[d];
    }
  }
  Doubles value, squares, prefix;
};

// A key/value head with the norms and column sums that the bounds need.
struct KeyHead {
  Matrix k, v;
  double k_norm = 0, v_norm = 0;
  Doubles v_squares, v_largest, k_squares;
};

KeyHead load_keys(const Problem& p, const ConstTensorView& k, const ConstTensorView& v, std::int64_t batch,
                  std::int64_t head, bool backward) {
  KeyHead keys{load(k, batch, head, true), load(v, batch, head, backward), 0, 0, {}, {}, {}};
  keys.v_squares.assign(at(p.head_dim), 0.0);
  keys.v_largest.assign(at(p.head_dim), 0.0);
  keys.k_squares.assign(at(p.head_dim), 0.0);
  for (std::int64_t j = 0; j < p.seq_k; ++j) {
    const double *k_row = keys.k.row(j), *v_row = keys.v.row(j);
    keys.k_norm = std::max(keys.k_norm, norm(k_row, p.head_dim));
    keys.v_norm = std::max(keys.v_norm, norm(v_row, p.head_dim));
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      keys.v_squares[at(d)] += v_row[d] * v_row[d];
      keys.k_squares[at(d)] += k_row[d] * k_row[d];
      keys.v_largest[at(d)] = std::max(keys.v_largest[at(d)], std::abs(v_row[d]));
    }
  }
  return keys;
}

// One query row forward: probabilities, O and L with their bounds.
struct ForwardRow {
  std::int64_t visible = 0;
  Doubles probability, out, out_tolerance;
  double lse = -std::numeric_limits<double>::infinity();
  RowError error;
};

ForwardRow forward_row(const Problem& p, const ErrorModel& model, const double* q, const KeyHead& keys,
                       std::int64_t row) {
  const double scale = p.effective_scale();
  ForwardRow result;
  result.visible = p.visible_keys(row);
  result.out.assign(at(p.head_dim), 0.0);
  result.out_tolerance.assign(at(p.head_dim), 0.0);  // a row that sees nothing is exactly zero
  if (result.visible == 0) return result;

  Doubles& probability = result.probability;
  probability.resize(at(result.visible));
  products_with_rows(q, keys.k, scale, 0, result.visible, probability.data());
  const double largest = *std::max_element(probability.begin(), probability.end());
  double sum = 0, squares = 0;
  for (double& x : probability) sum += x = std::exp(x - largest);
  for (double& x : probability) {
    x /= sum;
    squares += x * x;
  }
  result.lse = largest + std::log(sum);
  result.error = row_error(model, p.head_dim, scale, norm(q, p.head_dim), keys.k_norm,
                           static_cast<double>(result.visible), squares, result.lse, largest);

  Sums sums(p.head_dim);
  Doubles absolute(at(p.head_dim), 0.0);
  for (std::int64_t j = 0; j < result.visible; ++j) {
    const double weight = probability[at(j)];
    const double* v = keys.v.row(j);
    sums.add(weight, weight, v);
    for (std::int64_t d = 0; d < p.head_dim; ++d) absolute[at(d)] += weight * std::abs(v[d]);
  }
  for (std::int64_t d = 0; d < p.head_dim; ++d) {
    result.out_tolerance[at(d)] = out_bound(model, result.error,
                                            {.value = sums.value[at(d)],
                                             .absolute = absolute[at(d)],
                                             .squares = sums.squares[at(d)],
                                             .prefix = sums.prefix[at(d)],
                                             .v_squares = keys.v_squares[at(d)],
                                             .v_largest = keys.v_largest[at(d)]});
  }
  result.out = std::move(sums.value);
  return result;
}

// The numbers of a query row that the pass over keys needs.
struct BackwardRow {
  double lse = 0, row_dot = 0;
  double score_sigma = 0;    // of P's error from its score alone, grown
  double factor_sigma = 0;   // of P's error, L included: τ
  double product_sigma = 0;  // of dP: σ_ζ
  double dot_bound = 0;      // of D: ξ
};

BackwardRow backward_row(const Problem& p, const ErrorModel& model, const ForwardRow& forward, const double* dout,
                         const KeyHead& keys) {
  BackwardRow row;
  row.lse = forward.lse;
  double input = 0;
  for (std::int64_t d = 0; d < p.head_dim; ++d) {
    row.row_dot += forward.out[at(d)] * dout[d];
    input += std::pow(forward.out_tolerance[at(d)] * dout[d], 2);
  }
  const double growth =
      forward.error.score_bound > 0 ? kappa(forward.error.score_bound) / forward.error.score_bound : 1;
  const double functions = kFunctionUlps * model.unit;
  row.score_sigma = std::hypot(growth * forward.error.score_sigma, functions);
  row.factor_sigma = std::hypot(row.score_sigma, growth * forward.error.lse_bound / kLambda);
  const double rounding = model.unit * std::sqrt(static_cast<double>(p.head_dim)) * norm(dout, p.head_dim);
  row.product_sigma = (rounding + std::sqrt(2.0) * model.factor_unit * norm(dout, p.head_dim)) * keys.v_norm;
  row.dot_bound = kLambda * (rounding * norm(forward.out.data(), p.head_dim) + std::sqrt(input));
  return row;
}

// Error of dS_ij: of P times X, of dP and D (`rest`), of the casts of P and dS; of a P that was cast to one of fp16's
// subnormals, whatever its size; and of a P or a dS that underflows to zero.
double ds_error(const ErrorModel& model, double probability, double x, double factor_sigma, double rest) {
  const double cast = model.cast_unit * x, square = probability * probability, subnormal = model.cast_tiny * x;
  return std::sqrt(square * (std::pow(factor_sigma * x, 2) + rest * rest + 2 * cast * cast) + subnormal * subnormal) +
         model.tiny * (std::abs(x) + 1);
}

struct Selection {
  std::vector<std::int64_t> chosen;
  double fraction = 1.0;
};

// `wanted` of `total` indices, one from each of as many equal strata, the first and the last index among them unless
// `part` includes another of their stratum.
Selection choose(std::int64_t total, std::int64_t wanted, const Part& part) {
  Selection selection;
  wanted = std::clamp<std::int64_t>(wanted, std::min<std::int64_t>(total, 2), total);
  const RandomStream random(part.seed);
  for (std::int64_t n = 0; n < wanted; ++n) {
    const std::int64_t begin = n * total / wanted, end = (n + 1) * total / wanted;
    const auto jitter =
        static_cast<std::int64_t>(random.bits(static_cast<std::uint64_t>(n)) % static_cast<std::uint64_t>(end - begin));
    const bool asked = begin <= part.include && part.include < end;
    selection.chosen.push_back(asked ? part.include : n == 0 ? 0 : n == wanted - 1 ? total - 1 : begin + jitter);
  }
  selection.fraction = static_cast<double>(wanted) / static_cast<double>(total);
  return selection;
}

Expected blank(std::int64_t elements) { return {Doubles(at(elements), kNan), Doubles(at(elements), 0.0)}; }

}  // namespace

ForwardOracle forward_oracle(const Problem& p, const ConstTensorView& q, const ConstTensorView& k,
                             const ConstTensorView& v, const Part& part) {
  validate(p);
  const ErrorModel model = ErrorModel::of(p.dtype, p.tf32, part.weights_unit);
  const std::int64_t heads = p.batch * p.heads_q, rows = heads * p.seq_q, per_group = p.heads_q / p.heads_kv;
  const double row_cost = std::max(1.0, static_cast<double>(p.visible_pairs()) / static_cast<double>(p.seq_q)) *
                          static_cast<double>(p.head_dim);
  const auto wanted = static_cast<std::int64_t>(std::min(static_cast<double>(rows), part.budget / row_cost));
  const Selection selection = choose(rows, wanted, part);

  ForwardOracle oracle{blank(rows * p.head_dim), blank(rows), selection.fraction};
  // Rows are in the order of heads, so each key/value head is loaded once, one after the other.
  KeyHead keys;
  for (auto begin = selection.chosen.begin(); begin != selection.chosen.end();) {
    const std::int64_t group = *begin / (p.seq_q * per_group);  // (batch, key/value head)
    const auto end = std::find_if(begin, selection.chosen.end(),
                                  [&](std::int64_t row) { return row / (p.seq_q * per_group) != group; });
    keys = load_keys(p, k, v, group / p.heads_kv, group % p.heads_kv, false);
    device::parallel_for(end - begin, [&](std::int64_t index, int) {
      const std::int64_t flat = begin[index], i = flat % p.seq_q, head = flat / p.seq_q;
      Doubles query(at(p.head_dim));
      with_storage(q.dtype, [&]<typename T>(T) {
        const T* row = row_of<T>(q, head / p.heads_q, head % p.heads_q, i);
        std::transform(row, row + p.head_dim, query.begin(), [](T x) { return to_double(x); });
      });
      const ForwardRow row = forward_row(p, model, query.data(), keys, i);
      std::copy(row.out.begin(), row.out.end(), oracle.out.value.begin() + flat * p.head_dim);
      std::copy(row.out_tolerance.begin(), row.out_tolerance.end(), oracle.out.tolerance.begin() + flat * p.head_dim);
      oracle.lse.value[at(flat)] = row.lse;
      oracle.lse.tolerance[at(flat)] = row.error.lse_bound;
    });
    begin = end;
  }
  return oracle;
}

namespace {

// One key/value head and the query heads that read it.
class GroupGradient {
 public:
  GroupGradient(const Problem& p, const ConstTensorView& q, const ConstTensorView& k, const ConstTensorView& v,
                const ConstTensorView& dout, std::int64_t group, const Part& part)
      : p_(p),
        model_(ErrorModel::of(p.dtype, p.tf32, part.weights_unit)),
        key_model_(ErrorModel::of(p.dtype, p.tf32, std::max(part.weights_unit, part.summed_unit))),
        scale_(p.effective_scale()),
        per_group_(p.heads_q / p.heads_kv),
        group_(group),
        keys_(load_keys(p, k, v, group / p.heads_kv, group % p.heads_kv, true)) {
    const std::int64_t batch = group / p.heads_kv, first = group % p.heads_kv * per_group_;
    for (std::int64_t h = first; h < first + per_group_; ++h) {
      queries_.push_back(load(q, batch, h, false));
      douts_.push_back(load(dout, batch, h, false));
    }
    rows_.resize(at(per_group_ * p.seq_q));
  }

  void run(BackwardOracle& oracle) {
    device::parallel_for(per_group_ * p_.seq_q, [&](std::int64_t index, int) { query_row(index, oracle.dq); });
    constexpr std::int64_t kKeys = 32;
    device::parallel_for((p_.seq_k + kKeys - 1) / kKeys, [&](std::int64_t block, int) {
      const std::int64_t first = block * kKeys;
      key_block(first, std::min(kKeys, p_.seq_k - first), oracle);
    });
  }

 private:
  static void store(const ErrorModel& model, const GradientSums& sums, double scale, std::int64_t index, Expected& to) {
    to.value[at(index)] = sums.value;
    to.tolerance[at(index)] = gradient_bound(model, scale, sums);
  }

  void query_row(std::int64_t index, Expected& dq) {
    const std::int64_t head = index / p_.seq_q, i = index % p_.seq_q;
    const double* dout = douts_[at(head)].row(i);
    const ForwardRow forward = forward_row(p_, model_, queries_[at(head)].row(i), keys_, i);
    const BackwardRow row = backward_row(p_, model_, forward, dout, keys_);
    rows_[at(index)] = row;
    Doubles dp(at(forward.visible));
    products_with_rows(dout, keys_.v, 1.0, 0, forward.visible, dp.data());
    Sums sums(p_.head_dim), weighted(p_.head_dim);
    for (std::int64_t j = 0; j < forward.visible; ++j) {
      const double probability = forward.probability[at(j)], x = dp[at(j)] - row.row_dot;
      sums.add(probability * x, ds_error(model_, probability, x, row.score_sigma, row.product_sigma), keys_.k.row(j));
      weighted.add(probability, 0.0, keys_.k.row(j));
    }
    for (std::int64_t d = 0; d < p_.head_dim; ++d) {
      const double value = scale_ * sums.value[at(d)];
      const double coherent =
          std::abs(scale_ * weighted.value[at(d)]) * row.dot_bound + kappa(forward.error.lse_bound) * std::abs(value);
      const std::int64_t element = (group_ * per_group_ * p_.seq_q + index) * p_.head_dim + d;
      store(model_,
            {.value = value,
             .error_squares = sums.squares[at(d)],
             .prefix = sums.prefix[at(d)],
             .other_squares = keys_.k_squares[at(d)],
             .length = static_cast<double>(forward.visible),
             .coherent = coherent},
            scale_, element, dq);
    }
  }

  void key_block(std::int64_t first, std::int64_t count, BackwardOracle& oracle) const {
    std::vector<Sums> dk(at(count), Sums(p_.head_dim)), dv(at(count), Sums(p_.head_dim));
    Doubles score(at(count)), dp(at(count)), q_squares(at(p_.head_dim), 0.0), dout_squares(at(p_.head_dim), 0.0);
    for (std::int64_t index = 0; index < per_group_ * p_.seq_q; ++index) {
      const std::int64_t head = index / p_.seq_q, i = index % p_.seq_q;
      const std::int64_t seen = std::clamp<std::int64_t>(p_.visible_keys(i) - first, 0, count);
      if (seen == 0) continue;
      const double *q = queries_[at(head)].row(i), *dout = douts_[at(head)].row(i);
      const BackwardRow& row = rows_[at(index)];
      products_with_rows(q, keys_.k, scale_, first, seen, score.data());
      products_with_rows(dout, keys_.v, 1.0, first, seen, dp.data());
      for (std::int64_t j = 0; j < seen; ++j) {
        const double probability = std::exp(score[at(j)] - row.lse), x = dp[at(j)] - row.row_dot;
        const double rest = row.product_sigma + row.dot_bound / kLambda;
        dv[at(j)].add(probability, probability * std::hypot(row.factor_sigma, key_model_.cast_unit) + key_model_.tiny,
                      dout);
        dk[at(j)].add(probability * x, ds_error(key_model_, probability, x, row.factor_sigma, rest), q);
      }
      for (std::int64_t d = 0; d < p_.head_dim; ++d) {
        q_squares[at(d)] += q[d] * q[d];
        dout_squares[at(d)] += dout[d] * dout[d];
      }
    }
    const auto length = static_cast<double>(per_group_ * p_.seq_q);
    for (std::int64_t j = 0; j < count; ++j) {
      for (std::int64_t d = 0; d < p_.head_dim; ++d) {
        const std::int64_t element = (group_ * p_.seq_k + first + j) * p_.head_dim + d;
        const Sums &k = dk[at(j)], &v = dv[at(j)];
        store(key_model_,
              {.value = scale_ * k.value[at(d)],
               .error_squares = k.squares[at(d)],
               .prefix = k.prefix[at(d)],
               .other_squares = q_squares[at(d)],
               .length = length},
              scale_, element, oracle.dk);
        store(key_model_,
              {.value = v.value[at(d)],
               .error_squares = v.squares[at(d)],
               .prefix = v.prefix[at(d)],
               .other_squares = dout_squares[at(d)],
               .length = length},
              1.0, element, oracle.dv);
      }
    }
  }

  const Problem& p_;
  ErrorModel model_, key_model_;  // of sums over keys, and over queries
  double scale_;
  std::int64_t per_group_, group_;
  KeyHead keys_;
  std::vector<Matrix> queries_, douts_;
  std::vector<BackwardRow> rows_;
};

}  // namespace

BackwardOracle backward_oracle(const Problem& p, const ConstTensorView& q, const ConstTensorView& k,
                               const ConstTensorView& v, const ConstTensorView& dout, const Part& part) {
  validate(p);
  const std::int64_t groups = p.batch * p.heads_kv;
  const double group_cost = std::max(1.0, static_cast<double>(p.visible_pairs())) * static_cast<double>(p.head_dim) *
                            static_cast<double>(p.heads_q) / static_cast<double>(p.heads_kv);
  const auto wanted = static_cast<std::int64_t>(std::min(static_cast<double>(groups), part.budget / group_cost));
  const Selection selection = choose(groups, wanted, part);
  BackwardOracle oracle{blank(p.batch * p.heads_q * p.seq_q * p.head_dim),
                        blank(p.batch * p.heads_kv * p.seq_k * p.head_dim),
                        blank(p.batch * p.heads_kv * p.seq_k * p.head_dim), selection.fraction};
  for (const std::int64_t group : selection.chosen) GroupGradient(p, q, k, v, dout, group, part).run(oracle);
  return oracle;
}

}  // namespace syslab::attention
