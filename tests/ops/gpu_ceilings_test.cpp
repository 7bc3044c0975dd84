// The rungs of the matrix product and of the copy that run on a GPU.
#include <fmt/format.h>

#include <cmath>

#include "check/compare.hpp"
#include "core/random.hpp"
#include "ops/copy/copy.hpp"
#include "ops/gemm/gemm.hpp"
#include "ops/gemm/oracle.hpp"
#include "tests/device/gpu_fixture.hpp"

namespace syslab {
namespace {

class CudaCeilings : public device::GpuTest {};

TEST_F(CudaCeilings, EveryProductStaysWithinItsBoundAndItsRows) {
  int rungs = 0;
  for (const gemm::Rung& rung : gemm::ladder()) {
    if (rung.device != device::Kind::cuda || !rung.unavailable.empty()) continue;
    ++rungs;
    for (const DType dtype : rung.dtypes) {
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1}, {33, 65, 17}, {128, 64, 300}, {7, 200, 64}}) {
        const gemm::Problem p{m, n, k, dtype};
        SCOPED_TRACE(rung.name + " " + to_string(p));
        const auto tensor = [&](const Shape& shape, std::uint64_t seed) {
          std::vector<std::byte> bytes(static_cast<std::size_t>(shape.elements()) * size_of(dtype));
          fill(TensorView(bytes.data(), dtype, shape), RandomStream(seed), Distribution::normal);
          return bytes;
        };
        const std::vector<std::byte> a = tensor({m, k}, 1), b = tensor({k, n}, 2);
        std::vector<std::byte> c(static_cast<std::size_t>(m * n) * size_of(dtype));
        const device::Buffer a_there = to_gpu(a), b_there = to_gpu(b), c_there(c.size(), "test", stream);
        const gemm::Args args{ConstTensorView(a_there.data(), dtype, {m, k}),
                              ConstTensorView(b_there.data(), dtype, {k, n}),
                              TensorView(c_there.data(), dtype, {m, n})};
        gemm::validate(p, args);
        ASSERT_EQ(rung.supports(p), std::nullopt);
        rung.run(p, args, {}, stream);
        c = to_host<std::byte>(c_there);
        const Expected oracle =
            gemm::oracle(p, ConstTensorView(a.data(), dtype, {m, k}), ConstTensorView(b.data(), dtype, {k, n}),
                         {.operand_unit = rung.operand_unit});
        if (const auto there = gemm::oracle_there(p, rung)) {
          const auto expected = there({args.a, args.b}, stream);
          std::vector<double> values(oracle.value.size()), bounds(values.size());
          device::copy_now(values.data(), expected[0].there.value, values.size() * sizeof(double), stream);
          device::copy_now(bounds.data(), expected[0].there.tolerance, bounds.size() * sizeof(double), stream);
          for (std::size_t i = 0; i < values.size(); ++i) {
            ASSERT_NEAR(values[i], oracle.value[i], 1e-12 * (1 + std::abs(oracle.value[i])));
            ASSERT_NEAR(bounds[i], oracle.tolerance[i], 1e-12 * oracle.tolerance[i]);
          }
        } else {
          EXPECT_EQ(dtype, DType::f64);
        }
        const check::Comparison found =
            check::compare(ConstTensorView(c.data(), dtype, {m, n}), oracle.value, oracle.tolerance);
        EXPECT_TRUE(found.passed) << found.describe("c");
      }
    }
  }
  EXPECT_GT(rungs, 0);
}

TEST_F(CudaCeilings, EveryCopyMovesEveryByteAndNoOther) {
  for (const copy::Rung& rung : copy::ladder()) {
    if (rung.device != device::Kind::cuda || !rung.unavailable.empty()) continue;
    EXPECT_FALSE(copy::expect_there({4, DType::bf16}, rung));
    EXPECT_TRUE(copy::expect_there({4, DType::f64}, rung));
    for (const std::size_t elements : {1UL, 3UL, 31UL, 4097UL, (1UL << 20) + 1}) {
      for (const auto& [from_shift, to_shift] : {std::pair{0UL, 0UL}, {1UL, 1UL}, {0UL, 3UL}, {8UL, 0UL}}) {
        const std::size_t bytes = 2 * elements;
        SCOPED_TRACE(fmt::format("{} {} elements from +{} to +{}", rung.name, elements, from_shift, to_shift));
        std::vector<std::uint8_t> source(bytes + 32), target(bytes + 32, 0xa5);
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i * 131 >> 3);
        const device::Buffer from = to_gpu(source), to = to_gpu(target);
        const auto count = static_cast<std::int64_t>(elements);
        rung.run({count, DType::bf16},
                 {ConstTensorView(from.as<std::uint16_t>() + from_shift, DType::bf16, {count}),
                  TensorView(to.as<std::uint16_t>() + to_shift, DType::bf16, {count})},
                 stream);
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(2 * from_shift), bytes,
                    target.begin() + static_cast<std::ptrdiff_t>(2 * to_shift));
        EXPECT_EQ(to_host<std::uint8_t>(to), target);
      }
    }
  }
}

}  // namespace
}  // namespace syslab
