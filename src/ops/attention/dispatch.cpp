#include "ops/attention/dispatch.hpp"

#include <fmt/format.h>

#include <array>

#include "core/integers.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {
namespace {

// Blocks of 128 rows or keys, of all heads, from which on flash_wgmma is the faster one: with fewer, rungs that divide
// a head's keys among blocks are, and flash_wgmma does not. One causal head, H100: up to head_dim 64 it is as fast or
// slower at 128 blocks and faster at 256; above, it is slower at 64 and 1.1 times as fast at 128, where its rate
// follows the number of blocks and that of flash_mma does not.
constexpr std::int64_t kBlocksForHopper = 132, kBlocksForWideHeads = 112;

// What was measured (docs/performance.md): head_dim 64, 128, 192 and 256, 16 Ki tokens; one head of 128 to 65,536.
bool for_hopper(const Problem& problem, Pass pass, const Where& where) {
  constexpr std::int64_t kNarrow = 32;  // up to here flash_mma has a tile of this head_dim, and flash_wgmma pads to 64
  if (!where.walkable || problem.head_dim <= kNarrow) return false;
  const std::int64_t blocks = pass == Pass::forward ? problem.heads_q * ceil_div<std::int64_t>(problem.seq_q, 128)
                                                    : problem.heads_kv * ceil_div<std::int64_t>(problem.seq_k, 128);
  return problem.batch * blocks >= (problem.head_dim > 64 ? kBlocksForWideHeads : kBlocksForHopper);
}

constexpr std::array kRows{
    DispatchRow{
        "flash_wgmma",
        "Hopper's own instructions, and work for nearly every multiprocessor: 1.5 to 2.5 times FlashAttention-2 "
        "forward and backward",
        for_hopper},
    DispatchRow{"flash_wgmma_deterministic",
                "Hopper's own instructions, dQ added up in order: equal inputs give equal bits, at nine tenths of "
                "flash_wgmma's rate in the backward pass",
                for_hopper},
    DispatchRow{"flash_mma", "tensor cores, dQ added up by atomics: the fastest in half precision"},
    DispatchRow{"flash_mma_deterministic",
                "tensor cores, and nothing is added by atomics: equal inputs give equal bits, at four fifths of "
                "flash_mma's rate in the backward pass"},
    DispatchRow{"flash_fp32", "the fastest whose products are as exact as fp32's"},
    DispatchRow{"naive_cuda", "takes every shape and dtype on a GPU, at the price of its matrix of scores"},
    DispatchRow{"reference_cuda", "fp64"},
    DispatchRow{"flash_tiled", "the fastest on the CPU, and holds no matrix of scores"},
    DispatchRow{"naive", "takes every shape on the CPU"},
    DispatchRow{"reference", "fp64"},
};

std::string capability(int sm) { return fmt::format("{}.{}", sm / 10, sm % 10); }

}  // namespace

std::span<const DispatchRow> dispatch_rows() { return kRows; }

Where where_of(device::Stream stream) {
  if (stream.kind == device::Kind::cpu) return {};
  return {stream.kind, ops::require_gpu("attention", stream).sm};
}

bool walkable(std::initializer_list<ConstTensorView> tensors) {
  for (const ConstTensorView& view : tensors) {
    for (int dim = 0; dim + 1 < view.shape.rank(); ++dim) {
      if (view.size(dim) > 1 && view.stride(dim) <= 0) return false;
    }
  }
  return true;
}

std::optional<std::string> reason_against(const Rung& rung, const Problem& problem, Pass pass, const Where& where,
                                          Want want) {
  if (rung.device != where.device) return rung.device == device::Kind::cpu ? "runs on the CPU" : "runs on a GPU";
  if (!rung.unavailable.empty()) return rung.unavailable;
  if (rung.device == device::Kind::cuda && rung.minimum_sm > where.sm) {
    return fmt::format("needs compute capability {}, this GPU has {}", capability(rung.minimum_sm),
                       capability(where.sm));
  }
  if (rung.device == device::Kind::cuda && rung.maximum_sm != 0 && rung.maximum_sm < where.sm) {
    return fmt::format("runs on compute capability {}{}, this GPU has {}", capability(rung.maximum_sm),
                       rung.maximum_sm == rung.minimum_sm ? " alone" : " at most", capability(where.sm));
  }
  if (want == Want::deterministic && !rung.deterministic) return "is not deterministic";
  return rung.supports(problem, pass);
}

Dispatched dispatch(const Problem& problem, Pass pass, const Where& where, Want want) {
  std::string reasons;
  for (const DispatchRow& row : kRows) {
    if (row.applies != nullptr && !row.applies(problem, pass, where)) continue;
    const Rung& rung = find_rung(row.rung);
    const std::optional<std::string> reason = reason_against(rung, problem, pass, where, want);
    if (!reason) return {&rung, std::string(row.because)};
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : "; ", rung.name, *reason);
  }
  throw Error(ErrorKind::usage, fmt::format("attention: no implementation takes {}: {}", to_string(problem), reasons));
}

}  // namespace syslab::attention
