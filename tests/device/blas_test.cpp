#include "device/blas.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device/parallel.hpp"
#include "device/plain_gemm.hpp"

namespace syslab::device {
namespace {

struct Case {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  double alpha, beta;
};

// Small integers, so that every sum is exact in float whatever the order, and equality is the test.
template <typename T>
std::vector<T> integers(std::int64_t count, int salt) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(static_cast<int>((i * 7 + static_cast<std::size_t>(salt)) % 11) - 5);
  }
  return values;
}

template <typename T>
std::vector<T> expected_product(const Case& p, const std::vector<T>& a, std::int64_t lda, const std::vector<T>& b,
                                std::int64_t ldb, std::vector<T> c, std::int64_t ldc) {
  auto at = [](const std::vector<T>& x, std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      T sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        sum += at(a, p.transpose_a ? l * lda + i : i * lda + l) * at(b, p.transpose_b ? j * ldb + l : l * ldb + j);
      }
      auto& slot = c[static_cast<std::size_t>(i * ldc + j)];
      slot = static_cast<T>(p.alpha) * sum + (p.beta == 0 ? T(0) : static_cast<T>(p.beta) * slot);
    }
  }
  return c;
}

template <typename T, typename Gemm>
void expect_exact_products(Gemm gemm) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const auto& [alpha, beta] : {std::pair{1.0, 0.0}, {2.0, 1.0}, {-1.0, 3.0}, {1.0, 1.0}}) {
        const Case p{ta, tb, 17, 13, 19, alpha, beta};
        const std::int64_t lda = (ta ? p.m : p.k) + 3, ldb = (tb ? p.k : p.n) + 2, ldc = p.n + 1;
        const auto a = integers<T>((ta ? p.k : p.m) * lda, 1);
        const auto b = integers<T>((tb ? p.n : p.k) * ldb, 2);
        auto c = integers<T>(p.m * ldc, 3);
        const auto expected = expected_product(p, a, lda, b, ldb, c, ldc);
        gemm(ta, tb, p.m, p.n, p.k, static_cast<T>(alpha), a.data(), lda, b.data(), ldb, static_cast<T>(beta), c.data(),
             ldc);
        EXPECT_EQ(c, expected) << "transpose_a " << ta << " transpose_b " << tb << " alpha " << alpha;
      }
    }
  }
}

TEST(Sgemm, IsExactOnSmallIntegersForEveryTransposeAndPaddedRow) { expect_exact_products<float>(sgemm); }
TEST(Dgemm, IsExactOnSmallIntegersForEveryTransposeAndPaddedRow) { expect_exact_products<double>(dgemm); }
TEST(PlainGemm, IsExactOnSmallIntegersForEveryTransposeAndPaddedRow) {
  expect_exact_products<float>(plain_gemm<float>);
  expect_exact_products<double>(plain_gemm<double>);
}

TEST(Sgemm, WithBetaZeroDoesNotReadC) {
  const std::vector<float> a{1}, b{2};
  std::vector<float> c{std::nanf("")};
  sgemm(false, false, 1, 1, 1, 1.0F, a.data(), 1, b.data(), 1, 0.0F, c.data(), 1);
  EXPECT_EQ(c[0], 2.0F);
  c[0] = std::nanf("");
  plain_gemm(false, false, 1, 1, 1, 1.0F, a.data(), 1, b.data(), 1, 0.0F, c.data(), 1);
  EXPECT_EQ(c[0], 2.0F);
}

TEST(Sgemm, IsRightWhenEveryThreadOfALoopMultiplies) {
  const std::int64_t n = 64;
  const auto a = integers<float>(n * n, 4), b = integers<float>(n * n, 5);
  std::vector<float> one(static_cast<std::size_t>(n * n));
  sgemm(false, true, n, n, n, 1.0F, a.data(), n, b.data(), n, 0.0F, one.data(), n);
  std::vector<std::vector<float>> all(16, std::vector<float>(one.size()));
  parallel_for(16, [&](std::int64_t i, int) {
    sgemm(false, true, n, n, n, 1.0F, a.data(), n, b.data(), n, 0.0F, all[static_cast<std::size_t>(i)].data(), n);
  });
  for (const auto& c : all) EXPECT_EQ(c, one);
}

TEST(Blas, SaysWhatServes) {
  const std::string name = blas_name();
  EXPECT_TRUE(name.starts_with("OpenBLAS ") || name.starts_with("plain loops (")) << name;
}

}  // namespace
}  // namespace syslab::device
