#include <cmath>

#include "ops/embedding/oracle.hpp"
#include "tests/ops/embedding_fixture.hpp"
#include "tests/ops/host_rungs.hpp"

namespace syslab::embedding {
namespace {

using ops::usage_error;

// Every pair of dtypes that the rung takes.
std::vector<Problem> problems_of(const Rung& rung, const Problem& shape) {
  std::vector<Problem> problems;
  for (const DType table : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const DType x : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      Problem problem = shape;
      problem.table_dtype = table;
      problem.x_dtype = x;
      const bool known = table == x || (table == DType::f32 && size_of(x) == 2);
      if (known && !rung.supports(problem)) problems.push_back(problem);
    }
  }
  return problems;
}

TEST(Embedding, EveryRungStaysWithinItsBound) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const std::int64_t rows : {1, 2, 50, 1000}) {
      for (const std::int64_t dim : {1, 3, 16, 70}) {
        for (const Problem& problem : problems_of(rung, {.rows = rows, .vocab = 37, .dim = dim})) {
          Instance i(problem, 5, 3);
          i.forward(rung);
          i.backward(rung);
          EXPECT_LE(i.worst(), 1.0) << rung.name << " " << to_string(problem);
          EXPECT_TRUE(i.x.gaps_are_untouched() && i.dtable.gaps_are_untouched());
        }
      }
    }
  }
}

TEST(Embedding, RowsWithoutATokenAreZero) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    const Problem problem = problems_of(rung, {.rows = 2, .vocab = 4, .dim = 3}).front();
    Instance i(problem);
    i.ids = {2, 2};
    i.backward(rung);
    const std::vector<double> found = i.dtable.values(), dx = i.dx.values();
    for (std::size_t at = 0; at < found.size(); ++at) {
      EXPECT_EQ(found[at] == 0, at / 3 != 2) << rung.name << " " << at;
    }
  }
}

TEST(Embedding, AccumulatingAddsToWhatIsThere) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const Problem& problem : problems_of(rung, {.rows = 90, .vocab = 11, .dim = 5})) {
      Instance i(problem);
      std::mt19937 random(8);
      i.dtable.fill_normal(random);
      const ops::Tensor before = i.dtable;
      i.backward(rung, true);
      const Expected expected = backward_oracle(problem, i.ids, i.dx.view(), before.view());
      EXPECT_LE(ops::worst_ratio(i.dtable.values(), expected.value, expected.tolerance), 1.0) << rung.name;
    }
  }
}

TEST(Embedding, AnIdOutsideTheTableIsNaNAndCountsNowhere) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{4}, INT64_MIN, INT64_MAX}) {
      Instance i(problems_of(rung, {.rows = 3, .vocab = 4, .dim = 2}).front());
      i.ids = {0, id, 3};
      i.forward(rung);
      i.backward(rung);
      const std::vector<double> x = i.x.values();
      for (std::size_t at = 0; at < x.size(); ++at) EXPECT_EQ(std::isnan(x[at]), at / 2 == 1) << rung.name;
      EXPECT_LE(i.worst(), 1.0) << rung.name;
    }
  }
}

TEST(Embedding, WhatDoesNotFitIsRefusedByName) {
  EXPECT_EQ(usage_error([] { validate(Problem{.table_dtype = DType::bf16, .x_dtype = DType::f32}); }),
            "an embedding from a table of bf16 gives the same, not fp32");
  Instance i({.rows = 3, .vocab = 4, .dim = 2});
  EXPECT_EQ(usage_error([&] {
              validate(i.problem, ForwardArgs{nullptr, i.table.view(), i.x.view()});
            }),
            "ids has no memory");
  EXPECT_EQ(usage_error([&] {
              validate(i.problem, BackwardArgs{i.ids.data(), i.dx.view(), i.x.view()});
            }),
            "dtable has shape (3, 2), must have (4, 2)");
}

}  // namespace
}  // namespace syslab::embedding
