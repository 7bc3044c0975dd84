// The functions of both hand-outs' `adapters.py`, and which experiments each one answers. A function that the lab can
// call has a door; of others it is only said whether they are there.
#pragma once

#include <span>
#include <string_view>

#include "core/device_kind.hpp"

namespace syslab::submission {

struct Adapter {
  std::string_view function;
  std::string_view handouts;            // "2025 2026"
  std::string_view problem;             // of the hand-out, that its tests are about
  std::string_view experiments;         // that check it: "flash_forward flash_backward"
  std::string_view door;                // what --mine takes after the file's colon; empty: no door yet
  DeviceKind device = DeviceKind::cpu;  // where it runs unless somebody says otherwise
  bool is_getter = false;               // takes no arguments, so that it can be called to see whether it is answered
  std::string_view timed = {};          // experiments that time it beside others of its kind, and do not check it
};

// In the order of the hand-outs.
std::span<const Adapter> adapters();
// Null where there is no such function.
const Adapter* find_adapter(std::string_view function);

inline bool is_of(const Adapter& adapter, std::string_view handout) {
  return handout.empty() || adapter.handouts.find(handout) != std::string_view::npos;
}

// It is called on ranks, which compute on CPUs or on GPUs, as is asked for. Attention is of plain PyTorch or of Triton,
// and has its place.
inline bool is_of_ranks(const Adapter& adapter) { return !adapter.is_getter && !adapter.door.empty(); }

}  // namespace syslab::submission
