// How many input sets a protocol's cache state needs, and whether caches are flushed instead.
#pragma once

#include <cstdint>
#include <string>

#include "measure/device.hpp"
#include "measure/protocol.hpp"

namespace syslab::measure {

struct CachePlan {
  int sets = 1;
  std::uint64_t flush_bytes = 0;  // before each sample; 0: no flush
  std::string state;              // what a call finds: "cold", "partly cold", "hot"
  std::string by;                 // what makes it cold: "rotation", "flush"; empty when hot
};

// `memory` limits all input sets together; a flushed buffer may take as much again. Rotation needs sets of more than
// twice the last-level cache; if memory or the number of tiny sets forbids that, a buffer of twice the cache is written
// before each sample, and its calls then use different sets; where there is no room for that either, the rotation goes
// over what there is, and the state says so.
CachePlan plan_caches(const Protocol& protocol, const Device& device, std::uint64_t bytes_per_set,
                      std::uint64_t memory);

}  // namespace syslab::measure
