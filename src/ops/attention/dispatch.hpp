// Which rung takes a problem where nobody names one: a rule of rows, each a rung and the reason why it comes where it
// stands. The first row that can take the problem does; a position on the ladder decides nothing.
//
//   const Dispatched chosen = dispatch(problem, Direction::backward, {device::Kind::cuda, 90});
//   chosen.rung->name   // "flash_mma"
//   chosen.because      // "tensor cores, dQ added by atomics: 1.24 times FlashAttention-2 …"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Where a problem will run.
struct Where {
  device::Kind device = device::Kind::cpu;
  int sm = 80;  // compute capability of a GPU, 90 for 9.0; of one that nobody has asked, the least that we build for
};

// Where work on `stream` runs; asks the GPU for its compute capability, once a thread. Errors: ops/require_gpu.hpp.
Where where_of(device::Stream stream);

// `deterministic`: only rungs that give bitwise equal results from equal inputs.
enum class Want { fastest, deterministic };

struct DispatchRow {
  std::string_view rung;
  std::string_view because;
  // Whether the row is meant for this problem; none: for every one that the rung supports.
  bool (*applies)(const Problem&, Direction, const Where&) = nullptr;
};

// In the order in which they are asked.
std::span<const DispatchRow> dispatch_rows();

struct Dispatched {
  const Rung* rung = nullptr;
  std::string because;
};

// Error(usage) with the reason of every rung of that device if none takes the problem.
Dispatched dispatch(const Problem& problem, Direction direction, const Where& where, Want want = Want::fastest);

// Why `rung` cannot take the problem there; nothing when it can. What dispatch() asks of every row.
std::optional<std::string> reason_against(const Rung& rung, const Problem& problem, Direction direction,
                                          const Where& where, Want want = Want::fastest);

}  // namespace syslab::attention
