#include "trace/memory.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace syslab::trace {

using device::MemoryCategory;

std::string_view to_string(LiveKind kind) {
  switch (kind) {
    case LiveKind::parameters:
      return "parameters";
    case LiveKind::gradients:
      return "gradients";
    case LiveKind::optimizer:
      return "optimizer state";
    case LiveKind::saved:
      return "saved activations";
    case LiveKind::temporaries:
      return "temporaries";
    case LiveKind::others:
      return "inputs and others";
  }
  return "";
}

std::vector<Allocation> pair_events(const std::vector<device::MemoryEvent>& events, Nanoseconds begin,
                                    std::vector<Allocation> before) {
  std::vector<Allocation> all = std::move(before);
  std::map<std::tuple<std::string, MemoryCategory, std::int64_t>, std::vector<std::size_t>> open;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].end) open[{all[i].tag, all[i].category, all[i].bytes}].push_back(i);
  }
  for (const device::MemoryEvent& event : events) {
    const std::int64_t bytes = std::abs(event.delta);
    std::vector<std::size_t>& alike = open[{event.tag, event.category, bytes}];
    if (event.delta > 0) {
      alike.push_back(all.size());
      all.push_back({event.tag, event.category, bytes, event.at, std::nullopt});
    } else if (alike.empty()) {
      all.push_back({event.tag, event.category, bytes, begin, event.at});
    } else {
      all[alike.back()].end = event.at;
      alike.pop_back();
    }
  }
  return all;
}

LiveKind kind_of(const Allocation& allocation, const ForwardPass& forward) {
  switch (allocation.category) {
    case MemoryCategory::parameter:
      return LiveKind::parameters;
    case MemoryCategory::gradient:
      return LiveKind::gradients;
    case MemoryCategory::optimizer:
      return LiveKind::optimizer;
    case MemoryCategory::workspace:
      return LiveKind::temporaries;
    case MemoryCategory::activation: {
      const bool made_there = allocation.begin >= forward.begin && allocation.begin <= forward.end;
      return made_there && (!allocation.end || *allocation.end > forward.end) ? LiveKind::saved : LiveKind::temporaries;
    }
    default:
      return LiveKind::others;
  }
}

std::int64_t LiveBytes::total() const { return std::accumulate(of.begin(), of.end(), std::int64_t{0}); }

std::vector<LiveBytes> live_bytes(const std::vector<Allocation>& allocations, const ForwardPass& forward,
                                  Nanoseconds begin) {
  struct Change {
    Nanoseconds at;
    std::size_t kind;
    std::int64_t delta;
  };
  std::vector<Change> changes;
  for (const Allocation& one : allocations) {
    if (one.category == MemoryCategory::library || (one.end && *one.end < begin)) continue;
    const auto kind = static_cast<std::size_t>(kind_of(one, forward));
    changes.push_back({std::max(one.begin, begin), kind, one.bytes});
    if (one.end) changes.push_back({*one.end, kind, -one.bytes});
  }
  // At one moment, releases come first: memory is not used twice.
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
    return a.at != b.at ? a.at < b.at : a.delta < 0 && b.delta > 0;
  });
  std::vector<LiveBytes> curve;
  LiveBytes live;
  for (const Change& change : changes) {
    live.at = change.at;
    live.of[change.kind] += change.delta;
    if (!curve.empty() && curve.back().at == live.at) {
      curve.back() = live;
    } else {
      curve.push_back(live);
    }
  }
  return curve;
}

LiveBytes peak_of(const std::vector<LiveBytes>& curve) {
  const auto highest = std::ranges::max_element(curve, {}, &LiveBytes::total);
  return highest == curve.end() ? LiveBytes{} : *highest;
}

std::vector<MemorySample> samples_of(const std::vector<LiveBytes>& curve, Nanoseconds shift) {
  std::vector<MemorySample> samples;
  for (const LiveBytes& one : curve) {
    MemorySample sample{.at = one.at + shift, .live = {}};
    for (std::size_t kind = 0; kind < kLiveKinds.size(); ++kind) {
      sample.live.emplace_back(to_string(kLiveKinds[kind]), one.of[kind]);
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace syslab::trace
