#include "parallel/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/error.hpp"
#include "core/text/named.hpp"

namespace syslab::parallel {

std::span<const StrategyInfo> strategies() {
  static constexpr std::array all{
      StrategyInfo{Strategy::naive, "naive", "behind the backward pass, one all-reduce a tensor"},
      StrategyInfo{Strategy::flat_copy, "flat_copy",
                   "behind it, one all-reduce of all gradients copied into one buffer and back", false, true},
      StrategyInfo{Strategy::flat_view, "flat_view",
                   "behind it, one all-reduce of the arena that the gradients are views of"},
      StrategyInfo{Strategy::overlap, "overlap",
                   "during the backward pass, one all-reduce a tensor as soon as it is final", true},
      StrategyInfo{Strategy::bucketed, "bucketed",
                   "during it, one all-reduce for as many tensors as a limit in bytes holds", true},
      StrategyInfo{Strategy::planned, "planned",
                   "during it, buckets computed from measured ready times and the measured speed of the link", true}};
  return all;
}

const StrategyInfo& info_of(Strategy strategy) {
  return *std::ranges::find(strategies(), strategy, &StrategyInfo::strategy);
}

std::string_view to_string(Strategy strategy) { return info_of(strategy).name; }

Strategy parse_strategy(std::string_view text) { return find_named(strategies(), "strategy", text).strategy; }

BucketSchedule schedule_of(const SyncOptions& options, const GradientPieces& pieces) {
  switch (options.strategy) {
    case Strategy::naive:
    case Strategy::overlap:
      return schedule_one_each(pieces);
    case Strategy::flat_copy:
    case Strategy::flat_view:
      return schedule_flat(pieces);
    case Strategy::bucketed: {
      std::vector<std::int64_t> caps;
      for (const double mb : options.bucket_mb) caps.push_back(bucket_mb_bytes(mb));
      return schedule_by_caps(pieces, caps);
    }
    case Strategy::planned:
      break;
  }
  if (!options.schedule || options.schedule->pieces() != pieces.size()) {
    throw Error(
        ErrorKind::usage,
        fmt::format("the strategy 'planned' needs a schedule of the model's {} gradients and was given {}; "
                    "schedule_buckets() makes one from measured times",
                    pieces.size(),
                    options.schedule ? fmt::format("one of {}", options.schedule->pieces()) : std::string("none")));
  }
  return *options.schedule;
}

}  // namespace syslab::parallel
