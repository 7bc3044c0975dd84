#pragma once

#include <vector>

#include "device/event.hpp"
#include "device/stream.hpp"

namespace syslab::parallel {

// Marks for `stream`, one a bucket, slot or unit.
inline std::vector<device::Event> events(int count, device::Stream stream, device::Timing timing = device::Timing::no) {
  std::vector<device::Event> made;
  for (int i = 0; i < count; ++i) made.emplace_back(device::place_of(stream), timing);
  return made;
}

}  // namespace syslab::parallel
