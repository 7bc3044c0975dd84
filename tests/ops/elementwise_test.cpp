#include "ops/elementwise/elementwise.hpp"

#include "tests/ops/host_rungs.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::elementwise {
namespace {

using ops::Tensor;
using ops::usage_error;

constexpr Problem kProblem{.rows = 7, .dim = 21};

Tensor random_matrix(DType dtype, unsigned seed, std::int64_t gap = 3) {
  std::mt19937 random(seed);
  return Tensor::matrix(dtype, kProblem.rows, kProblem.dim, gap).fill_normal(random);
}

Tensor empty_matrix(DType dtype, std::int64_t gap = 2) {
  return Tensor::matrix(dtype, kProblem.rows, kProblem.dim, gap);
}

TEST(Elementwise, ACastRoundsOnce) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType from : rung.dtypes) {
      for (const DType to : rung.dtypes) {
        const Tensor x = random_matrix(from, 2);
        Tensor y = empty_matrix(to), expected = y;
        expected.set_all(x.values());
        const CastArgs args{x.view(), y.view()};
        validate(kProblem, args);
        rung.cast(kProblem, args, {});
        EXPECT_EQ(y.bytes, expected.bytes) << rung.name << " " << to_string(from) << " to " << to_string(to);
      }
    }
  }
}

TEST(Elementwise, ASumIsRoundedOnceToWhatTheDtypesBecomeTogether) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType left : rung.dtypes) {
      for (const DType right : rung.dtypes) {
        for (const DType to : {promoted(left, right), DType::f32}) {
          if (std::find(rung.dtypes.begin(), rung.dtypes.end(), to) == rung.dtypes.end()) continue;
          const Tensor a = random_matrix(left, 2), b = random_matrix(right, 3, 0);
          Tensor y = empty_matrix(to), expected = y;
          const std::vector<double> of_a = a.values(), of_b = b.values();
          const bool wide = promoted(left, right) == DType::f64;
          for (std::size_t i = 0; i < of_a.size(); ++i) {
            const double sum = of_a[i] + of_b[i];
            expected.set(static_cast<std::int64_t>(i), wide ? sum : static_cast<double>(static_cast<float>(sum)));
          }
          const AddArgs args{a.view(), b.view(), y.view()};
          validate(kProblem, args);
          rung.add(kProblem, args, {});
          EXPECT_EQ(y.bytes, expected.bytes) << rung.name << " " << to_string(left) << " + " << to_string(right);
        }
      }
    }
  }
}

TEST(Elementwise, ASumMayLieWhereATermDoes) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    const DType dtype = rung.dtypes.front();
    Tensor a = random_matrix(dtype, 2), y = empty_matrix(dtype);
    const Tensor b = random_matrix(dtype, 3);
    rung.add(kProblem, {a.view(), b.view(), y.view()}, {});
    rung.add(kProblem, {a.view(), b.view(), a.view()}, {});
    EXPECT_EQ(a.values(), y.values());
  }
}

TEST(Elementwise, AFillWritesEveryElementAndNothingBetween) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : rung.dtypes) {
      Tensor y = empty_matrix(dtype);
      const FillArgs args{1.5, y.view()};
      validate(kProblem, args);
      rung.fill(kProblem, args, {});
      EXPECT_EQ(y.values(), std::vector<double>(static_cast<std::size_t>(kProblem.rows * kProblem.dim), 1.5));
      EXPECT_TRUE(y.gaps_are_untouched());
    }
  }
}

TEST(Elementwise, HalvesAreSplitAndRowsOfThemJoinedFromAnywhere) {
  const Rung& rung = find_rung("naive");
  const Tensor x = random_matrix(DType::f32, 5, 0);
  const ops::Halves expected(x);
  ops::Halves found(Tensor(DType::f32, x.shape));
  const SplitArgs split{x.view(), found.high.view(), found.low.view()};
  validate(kProblem, split);
  rung.split(kProblem, split, {});
  EXPECT_EQ(found.high.bytes, expected.high.bytes);
  EXPECT_EQ(found.low.bytes, expected.low.bytes);

  const std::int64_t offsets[] = {100, 0, 41};
  const Problem three{.rows = 3, .dim = 11};
  Tensor y = Tensor::matrix(DType::f32, 3, 11, 2);
  const auto flat = [](const ConstTensorView& view) { return ConstTensorView(view.data, view.dtype, {147}); };
  const JoinArgs join{flat(found.high.view()), flat(found.low.view()), offsets, y.view()};
  validate(three, join);
  rung.join(three, join, {});
  const std::vector<double> values = x.values(), joined = y.values();
  for (std::size_t i = 0; i < joined.size(); ++i) {
    EXPECT_EQ(joined[i], values[static_cast<std::size_t>(offsets[i / 11]) + i % 11]) << i;
  }
  EXPECT_TRUE(y.gaps_are_untouched());
  EXPECT_EQ(usage_error([&] {
              validate(three, JoinArgs{join.high, join.low, nullptr, y.view()});
            }),
            "the offsets of the rows to join have no memory");
}

TEST(Elementwise, WhatDoesNotFitIsRefused) {
  const Tensor a = random_matrix(DType::bf16, 1), b = random_matrix(DType::f32, 1);
  Tensor y = empty_matrix(DType::f16);
  EXPECT_EQ(usage_error([&] {
              validate(kProblem, AddArgs{a.view(), b.view(), y.view()});
            }),
            "a sum of bf16 and fp32 is fp32, not fp16");
  EXPECT_EQ(usage_error([&] {
              validate({.rows = 8, .dim = 21}, CastArgs{a.view(), y.view()});
            }),
            "x has shape (7, 21), must have (8, 21)");
}

}  // namespace
}  // namespace syslab::elementwise
