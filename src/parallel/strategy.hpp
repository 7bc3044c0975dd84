// The ways to reduce gradients, as a ladder: what the hand-outs' problems compare, and what they lead to.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "parallel/step_observer.hpp"
#include "planning/bucket_schedule.hpp"

namespace syslab::parallel {

enum class Strategy { naive, flat_copy, flat_view, overlap, bucketed, planned };
std::string_view to_string(Strategy strategy);   // "flat_copy"
Strategy parse_strategy(std::string_view text);  // Error(usage) with the nearest name

struct StrategyInfo {
  Strategy strategy;
  std::string_view name;     // "flat_copy"
  std::string_view teaches;  // one line
  bool overlaps = false;     // buckets travel while the backward pass still runs; else behind it
  bool copies = false;       // gradients are gathered in a buffer of their own, tensor by tensor, and brought back
};

// From clearest to fastest.
std::span<const StrategyInfo> strategies();
const StrategyInfo& info_of(Strategy strategy);

// What is reduced how.
struct SyncOptions {
  Strategy strategy = Strategy::bucketed;
  std::vector<double> bucket_mb{25};       // of `bucketed`: the limit in 2^20 bytes, or one for each bucket in turn
  std::optional<BucketSchedule> schedule;  // of `planned`: schedule_buckets()'s
  // Gradients are rounded to this dtype (bf16, f16) before they travel and summed in fp32 on their way where the
  // backend does that. Nothing: as they are.
  std::optional<DType> wire;
  bool timing = false;               // keeps the times of every bucket (GradientSync::timeline)
  StepObserver* observer = nullptr;  // outlives what is made with these options
};

// The buckets of a strategy. `pieces` as they travel. Error(usage) for `planned` without a schedule or with another
// model's.
BucketSchedule schedule_of(const SyncOptions& options, const GradientPieces& pieces);

}  // namespace syslab::parallel
