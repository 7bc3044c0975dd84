#include "trace/attribution.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace syslab::trace {

using device::RangeKind;

Belonging belonging_of(const std::vector<Span>& spans, std::optional<std::size_t> span) {
  Belonging found;
  const auto take = [](std::string& word, const std::string& name) {
    if (word.empty()) word = name;
  };
  const auto put_before = [](std::string& words, const std::string& name) {
    words = words.empty() ? name : name + "." + words;
  };
  std::string parts;  // since the last call, going outwards: the operator's only if there is a call around them
  for (auto at = span; at && *at < spans.size(); at = spans[*at].parent) {
    const Span& one = spans[*at];
    switch (one.kind) {
      case RangeKind::phase:
        take(found.phase, one.name);
        break;
      case RangeKind::layer:
        take(found.layer, one.name);
        break;
      case RangeKind::part:
        put_before(parts, one.name);
        break;
      case RangeKind::kernel:
        if (!parts.empty()) put_before(found.operation, parts);
        parts.clear();
        put_before(found.operation, one.name);
        break;
      case RangeKind::scope:
        break;
    }
  }
  found.part = parts.substr(parts.rfind('.') + 1);  // npos + 1 is 0: all of it
  return found;
}

std::vector<Attributed> attribute(const Trace& trace, std::size_t first) {
  std::vector<Attributed> all;
  for (const Activity& activity : trace.activities) {
    if (first > 0 && (!activity.span || *activity.span < first)) continue;
    std::optional<std::size_t> span = activity.span;
    if (activity.graph_node) {
      const auto captured = trace.graph_nodes.find(*activity.graph_node);
      if (captured != trace.graph_nodes.end()) span = captured->second;
    }
    all.push_back({&activity, belonging_of(trace.spans, span)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Attributed& a, const Attributed& b) { return a.activity->begin < b.activity->begin; });
  return all;
}

std::vector<KernelStat> kernel_stats(const std::vector<Attributed>& activities) {
  std::map<std::pair<std::string, std::string>, KernelStat> found;
  for (const Attributed& one : activities) {
    const std::string operation =
        one.belongs.operation.empty() ? std::string(to_string(one.activity->kind)) : one.belongs.operation;
    const std::string kernel = operation + "/" + one.activity->name;
    const Nanoseconds took = one.activity->end - one.activity->begin;
    const auto add = [&](const std::string& phase) {
      KernelStat& stat = found[{phase, kernel}];
      stat.least = stat.calls == 0 ? took : std::min(stat.least, took);
      stat.most = std::max(stat.most, took);
      stat.total += took;
      ++stat.calls;
    };
    add("");
    if (!one.belongs.phase.empty()) add(one.belongs.phase);
  }
  std::vector<KernelStat> stats;
  for (auto& [key, stat] : found) {
    stat.phase = key.first;
    stat.kernel = key.second;
    stats.push_back(std::move(stat));
  }
  std::stable_sort(stats.begin(), stats.end(), [](const KernelStat& a, const KernelStat& b) {
    return std::pair(a.phase, -a.total) < std::pair(b.phase, -b.total);
  });
  return stats;
}

std::int64_t count_calls(const std::vector<Span>& spans, const std::string& operation, const std::string& phase,
                         std::size_t first) {
  std::int64_t count = 0;
  for (std::size_t i = first; i < spans.size(); ++i) {
    if (spans[i].kind != RangeKind::kernel || spans[i].name != operation) continue;
    if (phase.empty() || belonging_of(spans, i).phase == phase) ++count;
  }
  return count;
}

}  // namespace syslab::trace
