// Whose turn it is in a backward pass: gradients become final in the order in which they lie in the arena, on every
// rank and in every step. One out of turn, twice or never is an Error on the same step that names it, and ends the
// communication of the other ranks, which would wait for it in vain.
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
  // The step does not use it: it counts as final in its turn. Called before that has come.
  void unused(int piece);
  bool is_unused(int piece) const { return unused_[static_cast<std::size_t>(piece)] != 0; }
  // Of those whose last piece is final, the next in the schedule's order; each once a step.
  std::optional<int> next_bucket();
  void finish();  // after all of them

  // For the destructor of whoever holds this. A step that was begun and not finished, because of an exception, ends the
  // communication of all ranks. Behind this nothing on either stream uses memory of the host, and what uses a GPU's on
  // `communication` comes before what is queued on `compute` from now on. A rank alone has work there, too: copies.
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
