#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/rounding.hpp"
#include "device/parallel.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/oracle.hpp"
#include "ops/kept_workspace.hpp"
#include "ops/sum_of_products.hpp"
#include "tests/ops/host_rungs.hpp"
#include "tests/ops/weighted_sum_fixture.hpp"

namespace syslab::gemm {
namespace {

using weighted_sum::Tensor;  // a tensor of any dtype with its exact values

struct Instance {
  Problem problem;
  Tensor a, b, c;

  explicit Instance(const Problem& p, std::int64_t gap = 0, unsigned seed = 1)
      : problem(p),
        a(p.dtype, {p.m, p.k}, {p.k + gap, 1}),
        b(p.dtype, {p.k, p.n}, {p.n + gap, 1}),
        c(p.dtype, {p.m, p.n}, {p.n + gap, 1}) {
    std::mt19937 random(seed);
    a.fill_normal(random);
    b.fill_normal(random);
  }

  Args args() { return {a.view(), b.view(), c.view()}; }
  std::vector<double> run(const Rung& rung, ops::Workspace workspace = {}) {
    validate(problem, args());
    rung.run(problem, args(), workspace, {});
    return c.values();
  }
};

TEST(Gemm, ReferenceGivesTheProductByHand) {
  Instance instance({2, 2, 3, DType::f64});
  for (int i = 0; i < 6; ++i) instance.a.store(i, i + 1);
  for (int i = 0; i < 6; ++i) instance.b.store(i, std::pow(10, i));
  EXPECT_EQ(instance.run(find_rung("reference")), (std::vector<double>{30201, 302010, 60504, 605040}));
}

TEST(Gemm, EveryRungStaysWithinItsBoundAtEveryTileEdge) {
  for (const Rung& rung : ops::host_rungs(ladder())) {
    for (const DType dtype : rung.dtypes) {
      for (const std::int64_t m : {1, 3, 4, 5, 31, 33, 65}) {
        for (const std::int64_t n : {1, 15, 16, 17, 33}) {
          for (const std::int64_t k : {1, 2, 7, 64, 129}) {
            Instance instance({m, n, k, dtype}, 3);
            if (rung.supports(instance.problem)) continue;  // no OpenBLAS
            const Expected exact = oracle(instance.problem, instance.a.view(), instance.b.view());
            const std::vector<double> found = instance.run(rung);
            for (std::size_t i = 0; i < found.size(); ++i) {
              ASSERT_LE(std::abs(found[i] - exact.value[i]), exact.tolerance[i])
                  << rung.name << " " << to_string(instance.problem) << " element " << i;
            }
          }
        }
      }
    }
  }
}

TEST(Gemm, TiledGivesTheSameBitsOnAnyNumberOfThreads) {
  const int before = device::thread_count();
  const Rung& tiled = find_rung("tiled");
  Instance instance({200, 190, 180, DType::f32});
  device::set_thread_count(1);
  const std::vector<double> alone = instance.run(tiled);
  for (const int threads : {2, 3, 7}) {
    device::set_thread_count(threads);
    EXPECT_EQ(instance.run(tiled), alone) << threads << " threads";
  }
  device::set_thread_count(before);
}

TEST(Gemm, TiledWorksInALentWorkspaceOfTheSizeItAsksFor) {
  const Rung& tiled = find_rung("tiled");
  Instance instance({70, 50, 30, DType::f32});
  const std::vector<double> own = instance.run(tiled);
  const ops::KeptWorkspace workspace(tiled.workspace_bytes(instance.problem));
  EXPECT_EQ(instance.run(tiled, workspace.lend()), own);
}

TEST(GemmOracle, OfALargeProductLooksAtEveryRowAndSaysHowMuch) {
  Instance instance({40, 50, 60, DType::f32});
  const Expected part =
      oracle(instance.problem, instance.a.view(), instance.b.view(), {.budget = 40 * 60 * 5, .seed = 3});
  const Expected whole = oracle(instance.problem, instance.a.view(), instance.b.view());
  std::int64_t computed = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    std::int64_t of_row = 0;
    for (std::int64_t j = 0; j < 50; ++j) {
      const auto at = static_cast<std::size_t>(i * 50 + j);
      if (std::isnan(part.value[at])) continue;
      ++of_row;
      EXPECT_EQ(part.value[at], whole.value[at]);
      EXPECT_EQ(part.tolerance[at], whole.tolerance[at]);
    }
    EXPECT_GE(of_row, 1) << "row " << i;
    EXPECT_LE(of_row, 5) << "row " << i;
    computed += of_row;
  }
  EXPECT_EQ(whole.fraction, 1.0);
  EXPECT_DOUBLE_EQ(part.fraction, static_cast<double>(computed) / 2000);
  const Expected other = oracle(instance.problem, instance.a.view(), instance.b.view(), {.budget = 12000, .seed = 4});
  bool elsewhere = false;
  for (std::size_t i = 0; i < part.value.size(); ++i) {
    elsewhere = elsewhere || std::isnan(part.value[i]) != std::isnan(other.value[i]);
  }
  EXPECT_TRUE(elsewhere) << "another seed looks at other elements";
}

TEST(Gemm, RefusesWhatItCannotTakeByName) {
  EXPECT_THROW(validate(Problem{0, 1, 1, DType::f32}), Error);
  Instance instance({4, 5, 6, DType::f32});
  Args args = instance.args();
  std::swap(args.a, args.b);
  try {
    validate(instance.problem, args);
    FAIL() << "A and B changed places";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a has shape (6, 5), must have (4, 6)"), std::string::npos)
        << error.what();
  }
  const auto reason = find_rung("openblas").supports({4, 4, 4, DType::bf16});
  ASSERT_TRUE(reason.has_value());
  EXPECT_NE(reason->find("bf16"), std::string::npos);
}

TEST(SumOfProductsBound, IsUnitsInTheLastPlaceByHand) {
  const double u = 0x1p-24;
  // One product carried in fp32: one rounding of its size, and what underflow may cost.
  EXPECT_NEAR(ops::sum_of_products_bound(DType::f32, 1, 3, 3), 3 * u / (1 - u), 1e-37);
  // bf16 has 8 bits: half a unit of the last is 2⁻⁹ of the value and more.
  EXPECT_NEAR(ops::sum_of_products_bound(DType::bf16, 1, 3, 3), 3 * unit_roundoff(DType::bf16), 4 * u);
  // From 64 terms on roundings are taken for independent.
  EXPECT_NEAR(ops::sum_of_products_bound(DType::f32, 1 << 20, 0, 1), 8 * 1024 * u, 1e-12);
}

}  // namespace
}  // namespace syslab::gemm
