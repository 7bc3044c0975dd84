// `cublas` and `cublas_tf32`: the library's product on a GPU, the ceiling of every kernel there that multiplies.
//
// Dense peaks of an H100 at 1.83 GHz, TFLOP/s: bf16 and fp16 989, TF32 494, fp64 67 on tensor cores, fp32 67 on FFMA
// units. Power holds bf16 at some 800 with random data (and 890 with zeros: never time those).
#include "device/cuda/cublas.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/gemm/rungs.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::gemm {
namespace {

void multiply(const Problem& p, const Args& args, device::GemmMath math, device::Stream stream) {
  device::gemm({.m = p.m,
                .n = p.n,
                .k = p.k,
                .a = {args.a.data, p.dtype, args.a.stride(0)},
                .b = {args.b.data, p.dtype, args.b.stride(0)},
                .c = {args.c.data, p.dtype, args.c.stride(0)},
                .math = math},
               stream);
}

Rung library_rung(const char* name, const char* teaches, std::vector<DType> dtypes, device::GemmMath math) {
  Rung rung;
  rung.name = name;
  rung.teaches = teaches;
  rung.dtypes = std::move(dtypes);
  rung.role = Role::peer;
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = supports_dtypes(rung);
  rung.workspace_bytes = [](const Problem&) -> std::size_t { return 0; };
  if constexpr (ops::kBuiltWithCuda) {
    rung.supports = [by_dtype = rung.supports](const Problem& problem) {
      auto refused = by_dtype(problem);
      if (!refused) {
        if (std::string missing = device::why_no_cublas(); !missing.empty()) refused = std::move(missing);
      }
      return refused;
    };
    rung.run = [math, name](const Problem& problem, const Args& args, ops::Workspace, device::Stream stream) {
      ops::require_gpu(name, stream);  // device::gemm() would take the host's library
      multiply(problem, args, math, stream);
    };
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace

Rung cublas_rung() {
  return library_rung("cublas", "the GPU library's product: what users call, and the ceiling there",
                      {DType::f32, DType::bf16, DType::f16, DType::f64}, device::GemmMath::exact);
}

Rung cublas_tf32_rung() {
  Rung rung = library_rung("cublas_tf32", "fp32 matrices cut to TF32 on tensor cores: 10 bits kept of 23", {DType::f32},
                           device::GemmMath::tf32);
  rung.operand_unit = 0x1p-10;  // the hardware may cut rather than round
  return rung;
}

}  // namespace syslab::gemm
