// The order of gradients in a backward pass: they become final in arena order, on every rank and in every step. A
// gradient that is out of turn, repeated or missing is an Error in the same step that names it, and ends the
// communication of the other ranks, which would wait for it forever.
//
//   turns.begin();
//   turns.take(piece);                                     // or turns.unused(piece)
//   while (const auto bucket = turns.next_bucket()) reduce(*bucket);
//   turns.finish();
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "device/device.hpp"
#include "planning/bucket_schedule.hpp"

namespace syslab::parallel {

class GradientTurns {
 public:
  // All of these outlive it. Errors are of kind usage.
  GradientTurns(comm::Communicator& ranks, const GradientPieces& pieces, const BucketSchedule& schedule);

  void begin();
  void take(int piece);  // is final
  // The step does not use it: it counts as final in its turn. Call before its turn.
  void unused(int piece);
  bool is_unused(int piece) const { return unused_[static_cast<std::size_t>(piece)] != 0; }
  // The next bucket in schedule order with its last piece final; each once per step.
  std::optional<int> next_bucket();
  void finish();  // after all of them

  // For the owner's destructor. If an exception left a step unfinished, this ends the communication of all ranks.
  // Afterwards nothing on either stream uses host memory, and work on `communication` that uses GPU memory precedes
  // work queued on `compute` from now on. A single rank has work there too: copies.
  void leave(device::Stream communication, device::Stream compute) noexcept;

  // Ends all ranks' communication for `why`, and throws it.
  [[noreturn]] void refuse(const std::string& why);

 private:
  void skip_unused();
  std::string names(int begin, int end) const;

  comm::Communicator& ranks_;
  const GradientPieces& pieces_;
  const BucketSchedule& schedule_;
  std::vector<char> unused_;  // by piece, of this step
  int next_ = 0, next_bucket_ = 0;
  bool open_ = false;
};

}  // namespace syslab::parallel
