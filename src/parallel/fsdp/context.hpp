// What gathering weights and scattering gradients have in common: the ranks, what is sharded and how, the two streams
// and who counts their waits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "device/event.hpp"
#include "parallel/fsdp/parts.hpp"
#include "parallel/moves.hpp"

namespace syslab::parallel {

// Waits of streams for events, counted: for tests of tests, one of a step is not made.
class EventWaits {
 public:
  explicit EventWaits(int left_out) : left_out_(left_out) {}
  void wait(const device::Event& event, device::Stream later) {
    if (made_++ != left_out_) event.before(later);
  }
  void begin_step() { made_ = 0; }
  int made() const { return made_; }

 private:
  int left_out_, made_ = 0;
};

// Where the matrices of a bracket lie once they are whole, in elements from the bracket's beginning.
struct BracketPlaces {
  BracketPlaces(const FsdpParts& parts, const ShardLayout& layout, const FsdpBracket& bracket);

  std::vector<std::int64_t> first;  // of each matrix
  Shape shape;                      // of all: (rows, width)
  std::int64_t room = 0;            // with the zeros behind the last
};

struct FsdpContext {
  // All that is given outlives this. Error(usage) for impossible parts.
  FsdpContext(comm::Communicator& ranks, const FsdpParts& parts, const ShardLayout& layout, device::Stream compute,
              device::Stream communication, int left_out_wait);

  // Of a plane that lies as `layout` says: (elements).
  TensorView replicated(const TensorView& shards, int tensor) const;
  // Ends the communication of all ranks: Error(usage).
  [[noreturn]] void refuse(const std::string& why) const;

  comm::Communicator& ranks;
  const FsdpParts& parts;
  const ShardLayout& layout;
  device::Stream compute, communication;
  EventWaits waits;
  Moves moves;                          // on `communication`
  std::vector<BracketPlaces> brackets;  // by bracket
};

}  // namespace syslab::parallel
