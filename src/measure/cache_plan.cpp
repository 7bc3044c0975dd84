#include "measure/cache_plan.hpp"

#include <algorithm>

namespace syslab::measure {
namespace {

constexpr std::uint64_t kMostSets = 4096;

}  // namespace

CachePlan plan_caches(const Protocol& protocol, const Device& device, std::uint64_t bytes_per_set,
                      std::uint64_t memory) {
  if (protocol.cache == Cache::hot) return {.sets = 1, .flush_bytes = 0, .state = "hot", .by = ""};

  const std::uint64_t each = std::max<std::uint64_t>(bytes_per_set, 1);
  const std::uint64_t beyond_cache = 2 * device.last_level_cache();
  const auto affordable = [&](std::uint64_t bytes) {
    return static_cast<int>(std::clamp<std::uint64_t>(bytes / each, 1, kMostSets));
  };

  if (protocol.cache == Cache::rotate) {
    const std::uint64_t wanted = beyond_cache / each + 1;
    if (wanted <= static_cast<std::uint64_t>(affordable(memory))) {
      return {.sets = static_cast<int>(wanted), .flush_bytes = 0, .state = "cold", .by = "rotation"};
    }
  }
  const std::uint64_t flush = protocol.flush_bytes > 0 ? protocol.flush_bytes : beyond_cache;
  if (protocol.cache == Cache::rotate && flush > memory) {
    return {.sets = affordable(memory), .flush_bytes = 0, .state = "partly cold", .by = "rotation"};
  }
  // A block of single calls, or a sample of many, uses as many different sets; one set is enough if there is no space
  // for more.
  const int useful = protocol.sample_floor > Nanoseconds{} ? static_cast<int>(kMostSets)
                                                           : std::min(protocol.block, device.most_windows());
  const int sets = std::min(affordable(memory), useful);
  return {.sets = sets, .flush_bytes = flush, .state = "cold", .by = "flush"};
}

}  // namespace syslab::measure
