// When each gradient of somebody's backward pass was final, from a file that another program wrote: what
// planning/planner.hpp needs of a model that is not ours. docs/planning-buckets.md shows how such files are made.
//
//   const GradientTrace trace = read_gradient_trace(text);
//   schedule_buckets(trace.pieces(), trace.ready(), curve);
//
// Read are (which one it is, is found out):
//   CSV             a line of names, then one a gradient: name, bytes, ready_us (or ready_ms, ready_s) and, where
//                   several steps were measured, step
//   JSON            objects of the same fields, in an array or under "gradients"
//   a Chrome trace  of PyTorch's profiler, recorded with shapes: its AccumulateGrad operations; or of whoever writes
//                   events of category "gradient" with args.bytes inside events named "backward"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/units.hpp"
#include "planning/pieces.hpp"

namespace syslab::parallel {

struct TracedGradient {
  std::string name;
  std::int64_t bytes = 0;
  Seconds ready{};  // since the backward pass began: the 0.9-quantile over the steps
};

struct GradientTrace {
  std::vector<TracedGradient> gradients;  // in the order in which they become final
  int steps = 1;
  std::string from;  // "CSV", "JSON", "a trace of PyTorch's profiler (GPU times)", …

  // As stretches of one arena without padding, in elements of two bytes: what the planner counts in.
  GradientPieces pieces() const;
  std::vector<Seconds> ready() const;
};

// Error(usage) says in which line or event which field is missing or makes no sense; and for files without a gradient.
GradientTrace read_gradient_trace(std::string_view text);

}  // namespace syslab::parallel
