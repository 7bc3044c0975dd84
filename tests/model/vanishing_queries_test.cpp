// What rounding may leave of dQ where it is nothing, beside attention's arithmetic in half precision, written down.
#include "model/vanishing_queries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.hpp"

namespace syslab::model {
namespace {

constexpr std::int64_t kDim = 64;

double in_bf16(double value) { return to_float(to_bf16(static_cast<float>(value))); }

using Vector = std::vector<double>;

double norm_of(const Vector& vector) {
  double squares = 0;
  for (const double value : vector) squares += value * value;
  return std::sqrt(squares);
}

// A row of a head in bf16. Values of the keys are the same, but that each was rounded on a way of its own; weights sum
// to 1 in fp32; P and O are rounded to bf16 as FlashAttention does; products are exact, sums in fp32, in two orders.
struct Row {
  Vector given, query;
  std::vector<Vector> values, keys;
  std::vector<float> weights;

  Row(std::uint64_t seed, std::int64_t count) {
    const RandomStream random(seed);
    std::uint64_t at = 0;
    const auto drawn = [&] {
      Vector made;
      for (std::int64_t d = 0; d < kDim; ++d) made.push_back(in_bf16(random.normal(at++)));
      return made;
    };
    given = drawn(), query = drawn();
    const Vector value = drawn();
    float sum = 0;
    for (std::int64_t j = 0; j < count; ++j) {
      Vector& own = values.emplace_back();
      for (const double one : value) {
        const double way = 2 * random.uniform(at++) - 1;
        own.push_back(in_bf16(count == 1 ? one : one * (1 + unit_roundoff(DType::bf16) * way)));
      }
      keys.push_back(drawn());
      weights.push_back(random.uniform(at++));
      sum += weights.back();
    }
    for (float& weight : weights) weight /= sum;
  }

  // ‖dQ‖; `off`: what O is too large by, relative to itself.
  double gradient(double off) const {
    Vector out, found(kDim);
    for (std::size_t d = 0; d < kDim; ++d) {
      float sum = 0;
      for (std::size_t j = 0; j < keys.size(); ++j) sum += static_cast<float>(in_bf16(weights[j]) * values[j][d]);
      out.push_back(in_bf16(static_cast<double>(sum) * (1 + off)));
    }
    float di = 0;
    for (std::size_t d = kDim; d-- > 0;) di += static_cast<float>(given[d] * out[d]);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      float dp = 0;
      for (std::size_t d = 0; d < kDim; ++d) dp += static_cast<float>(given[d] * values[j][d]);
      const double ds = in_bf16(weights[j] * (dp - di));
      for (std::size_t d = 0; d < kDim; ++d) found[d] += ds * keys[j][d] / std::sqrt(static_cast<double>(kDim));
    }
    return norm_of(found);
  }

  QueryRow terms() const {
    double sum = 0, absolute = 0, squares = 0, key = 0;
    for (std::size_t d = 0; d < kDim; ++d) {
      const double product = given[d] * values[0][d];
      sum += product, absolute += std::abs(product), squares += product * product;
    }
    for (const Vector& one : keys) key = std::max(key, norm_of(one));
    return {.products = absolute, .spread = std::sqrt(sum * sum + squares), .query = norm_of(query), .key = key};
  }
};

// Norms of dQ over some rows, found and allowed.
struct Compared {
  double found = 0, allowed = 0;
};
Compared compared(std::int64_t keys, double off = 0) {
  constexpr int kRows = 8;
  std::vector<QueryRow> rows;
  double squares = 0;
  for (std::uint64_t seed = 0; seed < kRows; ++seed) {
    const Row row(seed, keys);
    rows.push_back(row.terms());
    const double found = row.gradient(off);
    squares += found * found;
  }
  const QueryArithmetic arithmetic{.dtypes = dtypes_of(Precision::bf16_fused, Variant::fused),
                                   .values = std::sqrt(6.0) * unit_roundoff(DType::bf16),  // of the first layer
                                   .keys = keys,
                                   .head_dim = kDim,
                                   .input = 1};
  return {std::sqrt(squares), rounding_of_queries(rows, arithmetic).queries};
}

TEST(VanishingQueries, AreWorthARoundingOfSumsWhereThereIsOneKey) {
  const Compared right = compared(1);
  EXPECT_GT(right.found, 0);
  EXPECT_LE(right.found, right.allowed);
  // O off by the last place of bf16, as if P had been rounded by that: far more than fp32's sums explain.
  const Compared wrong = compared(1, 0x1p-7);
  EXPECT_GT(wrong.found, 10 * wrong.allowed);
}

TEST(VanishingQueries, AreWorthRoundingsToStorageWhereThereAreSeveral) {
  for (const std::int64_t keys : {2, 3, 8, 16}) {
    const Compared right = compared(keys);
    EXPECT_LE(right.found, right.allowed) << keys;
    EXPECT_GT(right.found, 10 * compared(1).allowed) << keys;
    const Compared wrong = compared(keys, 0.1);
    EXPECT_GT(wrong.found, wrong.allowed) << keys;
  }
}

TEST(VanishingQueries, AreAsLargeAsTheGradientThatAttentionIsGiven) {
  const QueryRow row{.products = 3, .spread = 1, .query = 2, .key = 4};
  QueryArithmetic arithmetic{.keys = 1, .head_dim = 16, .input = 1};
  const QueryRounding whole = rounding_of_queries({row, row}, arithmetic);
  EXPECT_NEAR(whole.queries / whole.keys, 2, 1e-6);
  arithmetic.of_gradient = 0x1p-10;
  EXPECT_NEAR(rounding_of_queries({row, row}, arithmetic).queries / whole.queries, 0x1p-10, 1e-6);
  // In fp16 small numbers are multiples of 2^-24, however small the gradient.
  arithmetic.dtypes.product = DType::f16;
  arithmetic.of_gradient = 0;
  EXPECT_GT(rounding_of_queries({row}, arithmetic).queries, 0x1p-25);
}

}  // namespace
}  // namespace syslab::model
