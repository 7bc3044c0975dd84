// The allocator's log of one step as allocations with a beginning and an end, and what is live at any time by what it
// is for.
//
// The log knows a tensor of a pass as `activation`. Whether it is kept for the backward pass or is gone before shows
// only in when it goes: one that is made in the forward pass and outlives it is saved, any other is a temporary.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/memory_log.hpp"
#include "trace/timeline.hpp"

namespace syslab::trace {

enum class LiveKind { parameters, gradients, optimizer, saved, temporaries, others };
inline constexpr std::array kLiveKinds{LiveKind::parameters, LiveKind::gradients,   LiveKind::optimizer,
                                       LiveKind::saved,      LiveKind::temporaries, LiveKind::others};
std::string_view to_string(LiveKind kind);  // "saved activations"

struct Allocation {
  std::string tag;
  device::MemoryCategory category = device::MemoryCategory::other;
  std::int64_t bytes = 0;
  Nanoseconds begin{};             // on the log's clock
  std::optional<Nanoseconds> end;  // none: it outlives the log
};

// Allocations and releases paired by tag, category and size, the newest first. A release without an allocation is of
// one from before: it is alive from `begin` on. `before`: those that are known to be alive at `begin`.
std::vector<Allocation> pair_events(const std::vector<device::MemoryEvent>& events, Nanoseconds begin,
                                    std::vector<Allocation> before = {});

// What an allocation is for, where the forward pass lasted from `begin` to `end`.
struct ForwardPass {
  Nanoseconds begin{}, end{};
};
LiveKind kind_of(const Allocation& allocation, const ForwardPass& forward);

// Live bytes from `begin` on, a row a change, by kind in the order of kLiveKinds. The library's memory is no caller's.
struct LiveBytes {
  Nanoseconds at{};
  std::array<std::int64_t, kLiveKinds.size()> of{};
  std::int64_t total() const;
};
std::vector<LiveBytes> live_bytes(const std::vector<Allocation>& allocations, const ForwardPass& forward,
                                  Nanoseconds begin);
// The first of the highest; zeros where there is none.
LiveBytes peak_of(const std::vector<LiveBytes>& curve);

// For a timeline, `shift` added to the log's times.
std::vector<MemorySample> samples_of(const std::vector<LiveBytes>& curve, Nanoseconds shift);

}  // namespace syslab::trace
