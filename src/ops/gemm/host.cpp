// The rungs that are a call or a loop: `reference`, `naive`, `openblas`.
#include "device/blas.hpp"
#include "device/plain_gemm.hpp"
#include "ops/gemm/rungs.hpp"

namespace syslab::gemm {
namespace {

constexpr auto kNoWorkspace = [](const Problem&) -> std::size_t { return 0; };

// One dot product an element: a row of A times a column of B, which has a stride of one row.
template <typename T>
void naive(const Problem& problem, const Args& args) {
  const T *a = args.a.as<T>(), *b = args.b.as<T>();
  T* c = args.c.as<T>();
  for (std::int64_t i = 0; i < problem.m; ++i) {
    for (std::int64_t j = 0; j < problem.n; ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < problem.k; ++p) {
        sum += to_float(a[i * args.a.stride(0) + p]) * to_float(b[p * args.b.stride(0) + j]);
      }
      c[i * args.c.stride(0) + j] = from_float<T>(sum);
    }
  }
}

}  // namespace

Rung reference_rung() {
  auto rung = ops::reference<Rung>("the formula in double precision, rows of B added up: what the others must equal");
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = kNoWorkspace;
  rung.run = [](const Problem& p, const Args& args, ops::Workspace, device::Stream) {
    device::plain_gemm<double>(false, false, p.m, p.n, p.k, 1.0, args.a.as<double>(), args.a.stride(0),
                               args.b.as<double>(), args.b.stride(0), 0.0, args.c.as<double>(), args.c.stride(0));
  };
  return rung;
}

Rung naive_rung() {
  Rung rung;
  rung.name = "naive";
  rung.role = Role::naive;
  rung.teaches = "one dot product an element, on one thread: every step of it waits for a new line of B";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = kNoWorkspace;
  rung.run = [](const Problem& problem, const Args& args, ops::Workspace, device::Stream) {
    with_storage(problem.dtype, [&]<typename T>() { naive<T>(problem, args); });
  };
  return rung;
}

Rung openblas_rung() {
  Rung rung;
  rung.name = "openblas";
  rung.teaches = "the library's sgemm and dgemm on every thread: what users call, and the ceiling";
  rung.dtypes = {DType::f32, DType::f64};
  rung.role = Role::peer;
  rung.supports = [by_dtype = supports_dtypes(rung)](const Problem& problem) -> std::optional<std::string> {
    if (auto refused = by_dtype(problem)) return refused;
    if (!device::openblas_found()) return "no OpenBLAS on this machine (Debian: libopenblas0)";
    return std::nullopt;
  };
  rung.workspace_bytes = kNoWorkspace;
  rung.run = [](const Problem& p, const Args& args, ops::Workspace, device::Stream) {
    if (p.dtype == DType::f64) {
      device::dgemm(false, false, p.m, p.n, p.k, 1.0, args.a.as<double>(), args.a.stride(0), args.b.as<double>(),
                    args.b.stride(0), 0.0, args.c.as<double>(), args.c.stride(0));
    } else {
      device::sgemm(false, false, p.m, p.n, p.k, 1.0F, args.a.as<float>(), args.a.stride(0), args.b.as<float>(),
                    args.b.stride(0), 0.0F, args.c.as<float>(), args.c.stride(0));
    }
  };
  return rung;
}

}  // namespace syslab::gemm
