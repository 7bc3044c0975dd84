// The rungs on a GPU. An H100 moves about 3.0 TB/s, read and written together (90 % of its memory's 3.35): 64 MiB there
// and back in 45 µs; what fits its L2 of 50 MB goes faster.
#include "device/buffer.hpp"
#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "ops/copy/cuda_kernels.hpp"
#include "ops/copy/rungs.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::copy {
namespace {

void by_the_runtime(const Problem& problem, const Args& args, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("cuda_memcpy", stream).place);
  device::copy(args.to.data, args.from.data, static_cast<std::size_t>(problem.bytes()), stream);
}

void by_vectors(const Problem& problem, const Args& args, device::Stream stream) {
  const device::CurrentDevice current(ops::require_gpu("cuda_vectors", stream).place);
  copy_vectors(args.from.data, args.to.data, static_cast<std::size_t>(problem.bytes()), size_of(problem.dtype), stream);
}

Rung on_cuda(const char* name, const char* teaches) {
  Rung rung;
  rung.name = name;
  rung.teaches = teaches;
  rung.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  rung.supports = [](const Problem&) -> std::optional<std::string> { return std::nullopt; };
  return rung;
}

}  // namespace

ExpectThere expect_there(const Problem& problem, const Rung& rung) {
  if (rung.device != device::Kind::cuda || problem.dtype != DType::f64) return {};
  return [](const Inputs& in, device::Stream stream) -> std::vector<Expected> {
    auto nothing = std::make_shared<device::Buffer>(sizeof(double), "copy oracle", stream);
    device::fill_bytes(nothing->data(), 0, sizeof(double), stream);
    const auto* tolerance = nothing->as<double>();
    return {{{}, {}, 1.0, {in[0].as<double>(), tolerance, 1, std::move(nothing)}}};
  };
}

Rung cuda_memcpy_rung() {
  Rung rung = on_cuda("cuda_memcpy", "cudaMemcpyAsync from the GPU's memory to itself: what everybody calls");
  rung.role = Role::peer;
  if constexpr (ops::kBuiltWithCuda) {
    rung.run = by_the_runtime;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

Rung cuda_vectors_rung() {
  Rung rung = on_cuda("cuda_vectors", "a kernel of 16-byte loads and stores, four in flight a thread");
  if constexpr (ops::kBuiltWithCuda) {
    rung.run = by_vectors;
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::copy
