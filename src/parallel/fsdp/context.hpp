// Shared by gathering weights and scattering gradients: the ranks, the sharding, the two streams and who watches
// their waits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "parallel/fsdp/parts.hpp"
#include "parallel/moves.hpp"
#include "parallel/step_observer.hpp"

namespace syslab::parallel {

// Positions of a bracket's matrices once gathered, in elements from the bracket's beginning.
struct BracketPlaces {
  BracketPlaces(const FsdpParts& parts, const ShardLayout& layout, const FsdpBracket& bracket);

  std::vector<std::int64_t> first;  // of each matrix
  Shape shape;                      // of all: (rows, width)
  std::int64_t room = 0;            // with the zeros behind the last
};

struct FsdpContext {
  // All that is given outlives this. Error(usage) for impossible parts.
  FsdpContext(comm::Communicator& ranks, const FsdpParts& parts, const ShardLayout& layout, device::Stream compute,
              device::Stream communication, StepObserver* observer);

  // Of a plane that lies as `layout` says: (elements).
  TensorView replicated(const TensorView& shards, int tensor) const;
  // Ends the communication of all ranks: Error(usage).
  [[noreturn]] void refuse(const std::string& why) const;

  comm::Communicator& ranks;
  const FsdpParts& parts;
  const ShardLayout& layout;
  device::Stream compute, communication;
  StepObserver* observer;
  Moves moves;                          // on `communication`
  std::vector<BracketPlaces> brackets;  // by bracket
};

}  // namespace syslab::parallel
