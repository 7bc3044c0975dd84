// Which step, phase, layer and operator a kernel belongs to, and tables of kernels by that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/activity.hpp"

namespace syslab::trace {

// Names of the spans around an activity, innermost of each kind; empty where there is none.
struct Belonging {
  std::string phase;  // "forward"
  std::string layer;  // "layers.3"
  std::string part;   // "attn"
  // Calls of operators from the outermost inwards, with the parts between them: "gemm", "attention.scores.gemm".
  std::string operation;
};
Belonging belonging_of(const std::vector<Span>& spans, std::optional<std::size_t> span);

// An activity of the trace, with where it belongs.
struct Attributed {
  const Activity* activity = nullptr;
  Belonging belongs;
};

// Every activity that was queued at or after span `first`; a node of a graph belongs where it was captured. In order of
// time. The trace must outlive the result.
std::vector<Attributed> attribute(const Trace& trace, std::size_t first = 0);

// Kernels of one name in one phase, of a whole recording.
struct KernelStat {
  std::string phase;   // "": all phases, and what lies in none
  std::string kernel;  // "attention.scores.gemm/ampere_sgemm_128x64": operation/name; "copy/…" where it has none
  std::int64_t calls = 0;
  Nanoseconds total{}, least{}, most{};
};

// By phase, the longest total first; kernels, copies and fills.
std::vector<KernelStat> kernel_stats(const std::vector<Attributed>& activities);

// How many calls of an operator a phase had ("": all), counted on the host: of products, what a library was asked for,
// however many kernels it made of it.
std::int64_t count_calls(const std::vector<Span>& spans, const std::string& operation, const std::string& phase = {},
                         std::size_t first = 0);

}  // namespace syslab::trace
