// A recording as a file that ui.perfetto.dev and chrome://tracing open: JSON of the Trace Event Format.
//
//   lanes   host        phases, layers, parts and calls, nested
//           stream 7    kernels and copies of a stream, in their order
//           memory      live bytes by category, as a counter
//
// Source: "Trace Event Format", Google, the version that chrome://tracing documents; tests/trace/timeline_test.cpp has
// its rules.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trace/attribution.hpp"

namespace syslab::trace {

// Live bytes from a moment on, by category, on the clock of the spans.
struct MemorySample {
  Nanoseconds at{};
  std::vector<std::pair<std::string, std::int64_t>> live;  // ("parameter", 1024)
};

struct TimelineOptions {
  std::string title;      // "small, context 512, fp32, eager": shown as the process
  std::size_t first = 0;  // spans from here on, with their activities
};

// An object {"traceEvents": […], "displayTimeUnit": "ns", "otherData": {…}}. Times in microseconds since the first span
// or activity. Texts that are no UTF-8 are repaired.
std::string timeline_json(const Trace& trace, const TimelineOptions& options,
                          const std::vector<MemorySample>& memory = {});

}  // namespace syslab::trace
