#include <cmath>

#include "core/error.hpp"
#include "device/cuda/cublas.hpp"
#include "device/cuda/graph.hpp"
#include "device/digest.hpp"
#include "device/fill_random.hpp"
#include "device/memory_log.hpp"
#include "tests/device/gpu_fixture.hpp"

namespace syslab::device {
namespace {

class GpuBlas : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (const std::string why = why_no_cublas(); !why.empty()) GTEST_SKIP() << why;
  }

  // Largest relative error of C = 2·op(A)·op(B) + C over the batch, against double on the host.
  double error_of(DType in, DType out, GemmMath math, bool transpose_a, bool transpose_b) {
    constexpr std::int64_t kM = 65, kN = 40, kK = 96, kBatch = 3;
    const Shape a_shape = transpose_a ? Shape{kBatch, kK, kM} : Shape{kBatch, kM, kK};
    const Shape b_shape = transpose_b ? Shape{kBatch, kN, kK} : Shape{kBatch, kK, kN};
    const Shape c_shape{kBatch, kM, kN};
    const auto tensor = [&](DType dtype, const Shape& shape, std::uint64_t seed, Buffer& memory) {
      memory = Buffer(static_cast<std::size_t>(shape.elements()) * size_of(dtype), "x", stream);
      const TensorView view(memory.data(), dtype, shape);
      fill_random(view, RandomStream(seed), Distribution::normal, 1, 0, stream);
      return view;
    };
    const auto doubles = [&](const TensorView& view, const Buffer& memory) {
      std::vector<std::byte> bytes = to_host<std::byte>(memory);
      return to_doubles(TensorView(bytes.data(), view.dtype, view.shape));
    };
    Buffer a_memory, b_memory, c_memory;
    const TensorView a = tensor(in, a_shape, 1, a_memory), b = tensor(in, b_shape, 2, b_memory),
                     c = tensor(out, c_shape, 3, c_memory);
    const std::vector<double> av = doubles(a, a_memory), bv = doubles(b, b_memory), before = doubles(c, c_memory);
    gemm({.m = kM,
          .n = kN,
          .k = kK,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .alpha = 2,
          .beta = 1,
          .a = {a.data, in, a.size(2), kM * kK},
          .b = {b.data, in, b.size(2), kN * kK},
          .c = {c.data, out, kN, kM * kN},
          .batch = kBatch,
          .math = math},
         stream);
    const std::vector<double> after = doubles(c, c_memory);
    double worst = 0;
    for (std::int64_t i = 0; i < kBatch * kM * kN; ++i) {
      const std::int64_t batch = i / (kM * kN), row = i / kN % kM, column = i % kN;
      double sum = before[static_cast<std::size_t>(i)], size = std::abs(sum);
      for (std::int64_t p = 0; p < kK; ++p) {
        const double x = av[static_cast<std::size_t>(batch * kM * kK + (transpose_a ? p * kM + row : row * kK + p))];
        const double y =
            bv[static_cast<std::size_t>(batch * kN * kK + (transpose_b ? column * kK + p : p * kN + column))];
        sum += 2 * x * y;
        size += std::abs(2 * x * y);
      }
      worst = std::max(worst, std::abs(after[static_cast<std::size_t>(i)] - sum) / size);
    }
    return worst;
  }
};

TEST_F(GpuBlas, ProductsAreRightInEveryDtypeAndOrientation) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      SCOPED_TRACE(transpose_a ? (transpose_b ? "TT" : "TN") : (transpose_b ? "NT" : "NN"));
      EXPECT_LT(error_of(DType::f64, DType::f64, GemmMath::exact, transpose_a, transpose_b), 1e-14);
      EXPECT_LT(error_of(DType::f32, DType::f32, GemmMath::exact, transpose_a, transpose_b), 1e-6);
      EXPECT_LT(error_of(DType::f16, DType::f32, GemmMath::exact, transpose_a, transpose_b), 1e-6);
      EXPECT_LT(error_of(DType::bf16, DType::f32, GemmMath::exact, transpose_a, transpose_b), 1e-6);
      EXPECT_LT(error_of(DType::f16, DType::f16, GemmMath::exact, transpose_a, transpose_b), 0x1p-11 * 1.01);
      EXPECT_LT(error_of(DType::bf16, DType::bf16, GemmMath::exact, transpose_a, transpose_b), 0x1p-8 * 1.01);
    }
  }
}

TEST_F(GpuBlas, Tf32IsUsedWhenAskedForAndOnlyThen) {
  const double rounded = error_of(DType::f32, DType::f32, GemmMath::tf32, false, false);
  EXPECT_LT(rounded, 0x1p-10);
  EXPECT_GT(rounded, 1e-6) << "no trace of TF32's rounding: it was not used";
}

TEST_F(GpuBlas, ProductsAreCapturedAfterAFirstCall) {
  const Buffer memory(3 * 64 * 64 * sizeof(float), "x", stream);
  fill_bytes(memory.data(), 0, memory.bytes(), stream);
  const auto product = [&] {
    sgemm(false, false, 64, 64, 64, 1, memory.as<float>(), 64, memory.as<float>() + 4096, 64, 0,
          memory.as<float>() + 8192, 64, stream);
  };
  product();
  const Capture captured = capture(stream, product);
  ASSERT_TRUE(captured.graph) << captured.why;
  captured.graph->replay(stream);
  synchronize(stream);
}

TEST_F(GpuBlas, WhatCublasKeepsForAStreamIsNoCallersAndEndsWithIt) {
  const MemoryLog& log = MemoryLog::of(kGpu);
  const std::int64_t kept_before = log.library_bytes();
  for (int life = 0; life < 2; ++life) {
    const OwnedStream own(kGpu);
    const Buffer memory(3 * 64 * 64 * sizeof(float), "x", own.view());
    fill_bytes(memory.data(), 0, memory.bytes(), own.view());
    MemoryLog::of(kGpu).reset_peak();
    const std::int64_t live = log.live_bytes();
    sgemm(false, false, 64, 64, 64, 1, memory.as<float>(), 64, memory.as<float>() + 4096, 64, 0,
          memory.as<float>() + 8192, 64, own.view());
    EXPECT_EQ(log.peak_bytes(), live) << "in life " << life;
    EXPECT_EQ(log.library_bytes() - kept_before, 32 << 20);
  }
  EXPECT_EQ(log.library_bytes(), kept_before);
}

// The LM head of 151,936 words over 32,768 tokens: its logits are 4.98e9 elements, beyond 32 bits. Whole numbers of one
// digit, of which every sum is exact in any order.
TEST_F(GpuBlas, ProductsOfMoreThan32BitsOfElementsAreThoseOfTheirParts) {
  constexpr std::int64_t kRows = 32'768, kClasses = 151'936, kDim = 256, kFew = 64, kParts = 4;
  constexpr std::size_t kRoom = std::size_t{12} << 30;
  if (const MemoryUse use = memory_use(kGpu); use.free < kRoom) GTEST_SKIP() << "12 GiB of GPU memory are wanted";
  const auto whole_numbers = [&](std::int64_t count, std::uint32_t seed) {
    std::vector<bf16> all(static_cast<std::size_t>(count));
    for (bf16& one : all) {
      seed = seed * 1'664'525U + 1'013'904'223U;
      one = to_bf16(static_cast<float>((seed >> 16) % 3) - 1.0F);
    }
    return to_gpu(all);
  };
  const Buffer x = whole_numbers(kRows * kDim, 1), w = whole_numbers(kClasses * kDim, 2);
  const auto made = [&](std::int64_t elements, DType dtype) {
    return Buffer(static_cast<std::size_t>(elements) * size_of(dtype), "x", stream);
  };
  const auto equal = [&](const void* found, const Buffer& wanted) {
    return digest(found, wanted.bytes(), stream) == digest(wanted.data(), wanted.bytes(), stream);
  };
  const auto rows_from = [](const Buffer& of, std::int64_t row, std::int64_t width, DType dtype) {
    return of.as<std::byte>() + row * width * static_cast<std::int64_t>(size_of(dtype));
  };

  const Buffer logits = made(kRows * kClasses, DType::bf16), last_logits = made(kFew * kClasses, DType::bf16);
  const auto forward = [&](std::int64_t rows, const void* from, const Buffer& to) {
    gemm({.m = rows,
          .n = kClasses,
          .k = kDim,
          .transpose_b = true,
          .a = {from, DType::bf16, kDim},
          .b = {w.data(), DType::bf16, kDim},
          .c = {to.data(), DType::bf16, kClasses}},
         stream);
  };
  forward(kRows, x.data(), logits);
  forward(kFew, rows_from(x, kRows - kFew, kDim, DType::bf16), last_logits);
  const std::byte* last = rows_from(logits, kRows - kFew, kClasses, DType::bf16);
  EXPECT_TRUE(equal(last, last_logits));

  const Buffer dx = made(kRows * kDim, DType::f32), last_dx = made(kFew * kDim, DType::f32);
  const auto to_inputs = [&](std::int64_t rows, const void* from, const Buffer& to) {
    gemm({.m = rows,
          .n = kDim,
          .k = kClasses,
          .a = {from, DType::bf16, kClasses},
          .b = {w.data(), DType::bf16, kDim},
          .c = {to.data(), DType::f32, kDim}},
         stream);
  };
  to_inputs(kRows, logits.data(), dx);
  to_inputs(kFew, last, last_dx);
  EXPECT_TRUE(equal(rows_from(dx, kRows - kFew, kDim, DType::f32), last_dx));

  const Buffer dw = made(kClasses * kDim, DType::f32), summed = made(kClasses * kDim, DType::f32);
  const auto to_weights = [&](std::int64_t first, std::int64_t rows, double keep, const Buffer& to) {
    gemm({.m = kClasses,
          .n = kDim,
          .k = rows,
          .transpose_a = true,
          .beta = keep,
          .a = {rows_from(logits, first, kClasses, DType::bf16), DType::bf16, kClasses},
          .b = {rows_from(x, first, kDim, DType::bf16), DType::bf16, kDim},
          .c = {to.data(), DType::f32, kDim}},
         stream);
  };
  to_weights(0, kRows, 0, dw);
  for (std::int64_t part = 0; part < kParts; ++part) {
    to_weights(part * kRows / kParts, kRows / kParts, part == 0 ? 0 : 1, summed);
  }
  EXPECT_TRUE(equal(dw.data(), summed));
}

}  // namespace
}  // namespace syslab::device
