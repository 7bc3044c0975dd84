#include "device/cuda/cublas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "device/blas.hpp"
#include "device/cuda/cublas_engine.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/queue.hpp"
#include "device/stream.hpp"

namespace syslab::device {
namespace {

void validate(const Gemm& g) {
  const auto fail = [](const std::string& what) { throw Error(ErrorKind::usage, "matrix product: " + what); };
  if (g.a.dtype != g.b.dtype) {
    fail(fmt::format("operands of one dtype wanted, not {} and {}", to_string(g.a.dtype), to_string(g.b.dtype)));
  }
  const bool result_fits = g.c.dtype == g.a.dtype || (g.c.dtype == DType::f32 && g.a.dtype != DType::f64);
  if (!result_fits) fail(fmt::format("no {} result of {} operands", to_string(g.c.dtype), to_string(g.a.dtype)));
  if (std::min({g.m, g.n, g.k, g.batch}) < 0) fail("a size is negative");
  const std::int64_t columns_a = g.transpose_a ? g.m : g.k, columns_b = g.transpose_b ? g.k : g.n;
  if (g.a.row_stride < columns_a || g.b.row_stride < columns_b || g.c.row_stride < g.n) {
    fail("a row stride is shorter than its row");
  }
  const std::int64_t largest = std::max({g.m, g.n, g.k, g.batch, g.a.row_stride, g.b.row_stride, g.c.row_stride});
  if (largest > std::numeric_limits<int>::max()) fail("a size or row stride does not fit 32 bits");
}

template <typename T, typename Product>
void on_host(const Gemm& g, const Product& product) {
  for (std::int64_t i = 0; i < g.batch; ++i) {
    product(g.transpose_a, g.transpose_b, g.m, g.n, g.k, static_cast<T>(g.alpha),
            static_cast<const T*>(g.a.data) + i * g.a.batch_stride, g.a.row_stride,
            static_cast<const T*>(g.b.data) + i * g.b.batch_stride, g.b.row_stride, static_cast<T>(g.beta),
            static_cast<T*>(g.c.data) + i * g.c.batch_stride, g.c.row_stride);
  }
}

// One engine per thread and stream, since creating a handle takes milliseconds. Stream numbers may repeat across GPUs.
struct Engines {
  std::map<std::pair<int, void*>, std::unique_ptr<CublasEngine>> of_stream;
  ~Engines();
};

thread_local bool engines_gone = false;  // destroyed with this thread; streams of static storage duration end later

Engines::~Engines() { engines_gone = true; }

auto& engines() {
  thread_local Engines kept;
  return kept.of_stream;
}

CublasEngine& engine_of(Stream stream) {
  std::unique_ptr<CublasEngine>& engine = engines()[{place_of(stream).index, stream.handle}];
  if (engine == nullptr) engine = make_cublas_engine(stream);
  return *engine;
}

}  // namespace

void forget_engines(Place place, Stream stream) noexcept {
  if (!engines_gone) engines().erase({place.index, stream.handle});
}

void gemm(const Gemm& g, Stream stream) {
  validate(g);
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  const NvtxRange range("gemm", RangeKind::kernel, stream, stream.kind == Kind::cuda ? "cuBLAS" : "host BLAS");
  if (stream.kind == Kind::cuda) {
    const CurrentDevice current(stream);
    return engine_of(stream).gemm(g);
  }
  expect_plain(stream, "a matrix product");
  if (g.c.dtype == DType::f64) {
    on_host<double>(g, [](auto... arguments) { dgemm(arguments...); });
  } else if (g.a.dtype == DType::f32) {
    on_host<float>(g, [](auto... arguments) { sgemm(arguments...); });
  } else {
    throw Error(ErrorKind::usage, fmt::format("matrix product: the host has none of {} operands; convert them to fp32",
                                              to_string(g.a.dtype)));
  }
}

void sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc,
           Stream stream) {
  gemm({.m = m,
        .n = n,
        .k = k,
        .transpose_a = transpose_a,
        .transpose_b = transpose_b,
        .alpha = static_cast<double>(alpha),
        .beta = static_cast<double>(beta),
        .a = {a, DType::f32, lda, 0},
        .b = {b, DType::f32, ldb, 0},
        .c = {c, DType::f32, ldc, 0}},
       stream);
}

void dgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
           const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
           std::int64_t ldc, Stream stream) {
  gemm({.m = m,
        .n = n,
        .k = k,
        .transpose_a = transpose_a,
        .transpose_b = transpose_b,
        .alpha = alpha,
        .beta = beta,
        .a = {a, DType::f64, lda, 0},
        .b = {b, DType::f64, ldb, 0},
        .c = {c, DType::f64, ldc, 0}},
       stream);
}

}  // namespace syslab::device
