#include "ops/attention/dispatch.hpp"

#include <fmt/format.h>

#include <array>

#include "core/integers.hpp"
#include "ops/require_gpu.hpp"

namespace syslab::attention {
namespace {

// Blocks of 128 rows (forward) or keys (backward), of all heads, from which on flash_wgmma is the faster one, whatever
// their length: nearly one for every multiprocessor. One causal head, backward, H100: up to head_dim 64 it is slower at
// 128 blocks and faster at 256; above, it is slower at 64 and 1.1 times as fast at 128.
constexpr std::int64_t kBlocksForHopper = 132, kBlocksForWideHeads = 112;

// Forward, where both rungs divide a head's keys among blocks: pairs of query and key that some head sees. One causal
// head: at head_dim 64 flash_wgmma is as fast at 2048 and 1.15 times as fast at 4096 (eight heads of 1024 are slower);
// above, it is as fast at 1024 and 1.1 times as fast at 2048. Up to 32, which it pads to 64: pairs of one head, since
// only heads of 8192 and more were measured to be faster, 1.2 times and at 65,536 as fast.
constexpr std::int64_t kPairsForHopper = std::int64_t{1} << 23, kPairsForWideHeads = std::int64_t{1} << 21;
constexpr std::int64_t kPairsOfNarrowHead = std::int64_t{1} << 25;
// With fewer queries most rows of a group are empty: one or 16 rows of 16 Ki to 64 Ki keys take flash_mma 0.75 to 1
// times as long.
constexpr std::int64_t kQueriesForHopper = 64;

// What was measured (docs/performance.md): head_dim 64 to 256, 16 Ki tokens; one to eight heads of 128 to 65,536.
bool for_hopper(const Problem& problem, Pass pass, const Where& where) {
  if (!where.walkable) return false;
  const bool forward = pass == Pass::forward;
  if (forward && problem.seq_q < kQueriesForHopper) return false;
  constexpr std::int64_t kNarrow = 32;
  if (problem.head_dim <= kNarrow) return forward && problem.visible_pairs() >= kPairsOfNarrowHead;
  const bool wide = problem.head_dim > 64;
  const std::int64_t pairs = problem.batch * problem.heads_q * problem.visible_pairs();
  if (forward && pairs >= (wide ? kPairsForWideHeads : kPairsForHopper)) return true;
  const std::int64_t blocks = forward ? problem.heads_q * ceil_div<std::int64_t>(problem.seq_q, 128)
                                      : problem.heads_kv * ceil_div<std::int64_t>(problem.seq_k, 128);
  return problem.batch * blocks >= (wide ? kBlocksForWideHeads : kBlocksForHopper);
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
    if (!reason) return {&rung, row.because};
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : "; ", rung.name, *reason);
  }
  throw Error(ErrorKind::usage, fmt::format("attention: no implementation takes {}: {}", to_string(problem), reasons));
}

}  // namespace syslab::attention
