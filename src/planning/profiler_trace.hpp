// Gradients in Chrome traces (the "Trace Event Format", which Perfetto reads as well).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"
#include "core/text/units.hpp"

namespace syslab::parallel {

// One gradient of one step.
struct GradientRecord {
  std::int64_t step = 0;
  std::string name;
  std::int64_t bytes = 0;
  Seconds ready{};  // since the step's backward pass began
};

// JSON without the events that gradients_of_events() does not look at: a profiler's file has millions. Discarded when
// it is none.
Json parse_events(std::string_view text);

// Of events of category "gradient" (args.bytes; final at their end) inside events named "backward", one a step; where
// there are none, of PyTorch's AccumulateGrad operations between the marks of its steps. Where these launched kernels,
// a gradient is final when the last kernel that was launched before the operation's end has ended, and the pass begins
// with its first kernel; NCCL's kernels do not count. `from` says which it was. Error(usage) when there are none.
std::vector<GradientRecord> gradients_of_events(const Json& events, std::string& from);

}  // namespace syslab::parallel
