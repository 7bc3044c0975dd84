// What all rungs have in common. An operator's folder derives its own Rung from this and exports its ladder:
//
//   std::span<const attention::Rung> attention::ladder();
#pragma once

#include <concepts>
#include <functional>
#include <ranges>
#include <string>
#include <vector>

#include "contract/role.hpp"
#include "contract/rung_fact.hpp"
#include "core/dtype.hpp"
#include "device/device.hpp"

namespace syslab {

struct RungInfo {
  std::string name;           // "flash_tiled"; unique in its ladder
  std::string teaches;        // one line: what a reader learns from this rung
  std::vector<DType> dtypes;  // supported by its tensors
  device::Kind device = device::Kind::cpu;
  int minimum_sm = 0;  // 80 for sm_80; 0 where no GPU is needed
  int maximum_sm = 0;  // 90 with a minimum of 90: compute capability 9.0 alone; 0: every newer GPU will do
  Role role = Role::ours;
  bool tf32 = false;      // rounds the factors of fp32 products to TF32, and is judged by TF32's bounds
  bool op_by_op = false;  // rounds every operation's result as a framework does; its bounds include that (eager.hpp)
  bool deterministic = true;  // bitwise equal results from equal inputs
  std::string language = "C++";
  std::string digest;  // of the object or source, for external rungs
  // Why this build lacks it ("needs CUDA, which this build has not"); empty if available. Such a rung has no entry
  // points; it stays in the ladder so that its absence is explained.
  std::string unavailable;
  // For a training step: which operator rungs it takes and why, for each precision: "attention: flash_mma in bf16
  // (tensor cores, …)". Empty for a rung itself, or if this build cannot run it.
  std::string takes;
  std::vector<RungFact> facts;  // constants and properties that reports print, beyond the fields above
};

// The rungs of any operator's ladder as RungInfo, in ladder order. Points into the ladder, which must outlive this.
class RungInfos {
 public:
  RungInfos() = default;
  template <std::ranges::input_range Ladder>
  requires std::derived_from<std::ranges::range_value_t<Ladder>, RungInfo> RungInfos(
      const Ladder& ladder) {  // NOLINT: a ladder is one
    for (const RungInfo& rung : ladder) rungs_.emplace_back(rung);
  }

  auto begin() const { return rungs_.begin(); }
  auto end() const { return rungs_.end(); }

 private:
  std::vector<std::reference_wrapper<const RungInfo>> rungs_;
};

}  // namespace syslab
