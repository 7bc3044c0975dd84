// Chooses the rung for a problem if the caller names none: an ordered list of rows, each a rung and the reason for its
// place. The first row that can take the problem wins; ladder positions do not matter.
//
//   const Dispatched chosen = dispatch(problem, Pass::backward, {device::Kind::cuda, 90});
//   chosen.rung->name   // "flash_mma"
//   chosen.because      // "tensor cores, dQ added by atomics: 1.24 times FlashAttention-2 …"
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

// Where a problem will run.
struct Where {
  device::Kind device = device::Kind::cpu;
  int sm = 80;           // compute capability of a GPU, 90 for 9.0; default: the minimum that we build for
  bool walkable = true;  // of the tensors: walkable()
};

// Where work on `stream` runs; queries the GPU's compute capability once per thread. Errors: ops/require_gpu.hpp.
Where where_of(device::Stream stream);

// Whether the copy engine of compute capability 9.0 can walk the tensors: no stride of 0, none backwards.
bool walkable(std::initializer_list<ConstTensorView> tensors);

// `deterministic`: only rungs that give bitwise equal results from equal inputs.
enum class Want { fastest, deterministic };

struct DispatchRow {
  std::string_view rung;
  std::string_view because;
  // Whether the row is meant for this problem; null: for every problem that the rung supports.
  bool (*applies)(const Problem&, Pass, const Where&) = nullptr;
};

// In the order in which they are tried.
std::span<const DispatchRow> dispatch_rows();

struct Dispatched {
  const Rung* rung = nullptr;
  std::string_view because;  // lasts as long as the process, and ends with a 0
};

// Error(usage) with every rung's reason if no rung of that device takes the problem.
Dispatched dispatch(const Problem& problem, Pass pass, const Where& where, Want want = Want::fastest);

// Why `rung` cannot take the problem there; nothing if it can. dispatch() calls it for every row.
std::optional<std::string> reason_against(const Rung& rung, const Problem& problem, Pass pass, const Where& where,
                                          Want want = Want::fastest);

}  // namespace syslab::attention
