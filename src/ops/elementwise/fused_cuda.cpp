// `fused_cuda`: the rung that calls cuda_kernels.cu.
#include "device/cuda/launch.hpp"
#include "ops/cuda_rung.hpp"
#include "ops/elementwise/cuda_kernels.hpp"
#include "ops/elementwise/rungs.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::elementwise {

Rung fused_cuda_rung() {
  Rung rung;
  rung.name = "fused_cuda";
  rung.teaches = "packs of four elements a thread, one kernel an operator";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.device = device::Kind::cuda;
  rung.minimum_sm = ops::kMinimumSm;
  if constexpr (ops::kBuiltWithCuda) {
    rung.cast = [](const Problem& problem, const CastArgs& args, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("elementwise by fused_cuda", stream).place);
      cuda_cast(problem, args, stream);
    };
    rung.add = [](const Problem& problem, const AddArgs& args, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("elementwise by fused_cuda", stream).place);
      cuda_add(problem, args, stream);
    };
    rung.fill = [](const Problem& problem, const FillArgs& args, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("elementwise by fused_cuda", stream).place);
      cuda_fill(problem, args, stream);
    };
    rung.split = [](const Problem& problem, const SplitArgs& args, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("elementwise by fused_cuda", stream).place);
      cuda_split(problem, args, stream);
    };
    rung.join = [](const Problem& problem, const JoinArgs& args, device::Stream stream) {
      const device::CurrentDevice current(ops::require_gpu("elementwise by fused_cuda", stream).place);
      cuda_join(problem, args, stream);
    };
    return rung;
  } else {
    return ops::without_cuda(rung);
  }
}

}  // namespace syslab::elementwise
