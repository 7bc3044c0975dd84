// What a device did: kernels and copies, each with the span that queued it. Where from: CUPTI (trace/cupti.hpp), events
// in streams (trace/event_tap.hpp), or, on the CPU, the spans themselves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/recorder.hpp"

namespace syslab::trace {

enum class ActivityKind { kernel, copy, fill };
std::string_view to_string(ActivityKind kind);  // "kernel"

inline constexpr const char* kHostTrack = "host";

struct Activity {
  ActivityKind kind = ActivityKind::kernel;
  std::string name;   // the kernel's, or what was copied: "copy, host to device"
  std::string track;  // "host", "stream 7"
  Nanoseconds begin{}, end{};
  std::optional<std::size_t> span;          // that was innermost when it was queued (of a graph: when it was launched)
  std::optional<std::uint64_t> graph_node;  // of a graph that was replayed
  std::int64_t bytes = 0;                   // of copies and fills
};

// One recording.
struct Trace {
  std::vector<Span> spans;
  std::vector<Activity> activities;
  // The span in which a node of a graph was captured: where its work belongs, whoever replays it.
  std::map<std::uint64_t, std::size_t> graph_nodes;
  std::string source;     // of the activities: "CUPTI", "events", "host clock"
  std::string why;        // it is not the best there is; empty: it is
  std::int64_t lost = 0;  // spans and activities that there was no room for
};

// Activities of work on the CPU from its spans of kind kernel: a call without calls inside is one activity; of a call
// with others inside, what those leave is a rest of the same name. So times add up and nothing counts twice. Spans of
// work on a GPU give none.
std::vector<Activity> host_activities(const std::vector<Span>& spans);

}  // namespace syslab::trace
