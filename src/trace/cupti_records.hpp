// What CUPTI tells, in words of our own, and how it is joined: apart from the library, so that it can be tested
// without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/activity.hpp"

namespace syslab::trace {

// A kernel, copy or fill as the device ran it. Times in ns on the host's clock.
struct DeviceRecord {
  ActivityKind kind = ActivityKind::kernel;
  std::string name;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;  // of the call that queued it
  std::uint64_t graph_node = 0;   // 0: of no graph
  std::int64_t bytes = 0;
};

// A call made while a span was open: `external` is the span's index + 1, since 0 is nobody's.
struct CorrelationRecord {
  std::uint32_t correlation = 0;
  std::uint64_t external = 0;
};

// Records may come in any order and from several buffers.
std::vector<Activity> join(const std::vector<DeviceRecord>& records, const std::vector<CorrelationRecord>& calls);

// The span in which each node of a graph was made. An executable graph has copies of the nodes that were captured, with
// ids of their own; kernels are reported by those.
class GraphNodes {
 public:
  void created(std::uint64_t node, std::optional<std::size_t> span);
  void cloned(std::uint64_t original, std::uint64_t node);
  const std::map<std::uint64_t, std::size_t>& spans() const { return spans_; }

 private:
  std::map<std::uint64_t, std::size_t> spans_;
};

// "_ZN6syslab4ops3runIfEEvPT_i" as "syslab::ops::run<float>": demangled, without result and parameters.
std::string readable_kernel_name(const char* name);

}  // namespace syslab::trace
