// A call's tensors on a GPU, handed to another process and taken back, in memory of ours; and the time between, by our
// own stream. What waits for what:
//
//   ours:    inputs copied in · [given] · step ← N+1 · wait for done ≥ N+1 · [taken] · outputs copied out · step ← N+2
//   theirs:  wait for step ≥ N+1 · the call · done ← N+1
//
// A GPU runs the kernels of one process at a time, and both marks of time are behind a kernel of ours. So theirs begins
// once it has been switched to, which is after our inputs are there, and what it has queued is over when it is switched
// back, before [taken] and the copies: whatever it says by its word, nothing of its kernels runs while we copy. Of the
// time between the marks that of both switches is subtracted: what is beyond a kernel's own time when a context of our
// own answers, with one kernel that touches no more memory than the call has inputs and outputs. That is measured at
// the beginning, before anything that is judged has run.
//
// Ours waits for theirs on a GPU, where no limit of time reaches, so whoever never writes `done` would hold it up for
// as long as the case may take. But theirs has no more to say of a call once it has said "returned", and it may say so
// only when step is N + 2, the last thing that our stream does. So that word ends the wait: kBehindTheLastWord.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/text/units.hpp"
#include "device/buffer.hpp"
#include "device/cuda/other_context.hpp"
#include "device/event.hpp"
#include "device/mapped_page.hpp"
#include "device/peer_memory.hpp"
#include "device/stream.hpp"
#include "worker/judged/call.hpp"

namespace syslab::worker {

// So long at most our stream may take behind the last word about a call: for an honest worker no time at all, see
// above. The seconds are for a machine on which nobody gets a turn; they are those from a fault to its being named.
inline constexpr std::chrono::milliseconds kBehindTheLastWord{3000};

class GpuHandover {
 public:
  // `words`: the beginning of the memory that both see (worker/judged/doorbell.hpp). Error(device), Unsupported where
  // the driver has no such memory, or others use the GPU, so that how long switching takes is not known. With the CPU
  // as its place it does the same on a queue there, and subtracts nothing: for tests.
  GpuHandover(std::byte* words, device::Place place);
  ~GpuHandover();

  // A new call, whose tensors have their offsets in `staging`, host memory of `bytes`: of it the inputs are taken. On
  // the GPU they hold NaN until they are given. Sets the request's gpu_memory and step.
  void begin(CallRequest& request, const std::byte* staging, std::size_t bytes);
  // By the host, for those that are needed before the clock starts. Waits for the copies.
  void give_early(std::span<const SharedTensor> inputs);
  void give(std::span<const SharedTensor> inputs);
  // Where outputs will be: in our memory, between guard zones, or in theirs. Error(comm) for a place that is none.
  void locate(std::span<const SharedTensor> outputs, const std::vector<Queued::Place>& places);
  void take(std::span<const SharedTensor> outputs);
  // Whether the outputs have been taken, or are within `limit`.
  bool taken_within(std::chrono::milliseconds limit) const;
  // Waits for that. `whole`: from given to taken; returned is that less what handing over takes, 0 at least.
  Nanoseconds finish(Nanoseconds& whole);
  // From the outputs that were taken, and the zones around them, to their offsets in host memory.
  void fetch(std::span<const SharedTensor> outputs, std::byte* staging);
  // An input whose place in the memory that both see no longer holds what it was given.
  std::optional<std::string> changed(std::span<const SharedTensor> inputs) const;
  // Whether, from the next call on, the cache holds nothing of the inputs when they are given.
  void serve_cold(bool wanted) { cold_ = wanted; }
  // Nobody waits any longer, neither their stream nor ours. False if ours still does after `limit`, since somebody who
  // sees the words, too, goes on writing others.
  bool give_up(std::chrono::milliseconds limit = kBehindTheLastWord) noexcept;

 private:
  void room_for(std::size_t bytes);
  void copy_in(std::span<const SharedTensor> inputs);
  void measure_handing_over();
  Nanoseconds between() const;
  std::uint32_t* step_word() const { return words_; }
  std::uint32_t* done_word() const { return words_ + 16; }

  std::uint32_t* words_;
  device::Place place_;
  std::optional<device::MappedPage> page_;  // on a GPU
  device::OwnedStream stream_;
  std::unique_ptr<device::PeerMemory> shared_;
  device::Buffer truth_, taken_, flush_;  // flush_: what is written to make the cache forget
  std::size_t bytes_ = 0;
  std::vector<const std::byte*> from_;  // where this call's outputs are
  device::Event given_at_, taken_at_;
  std::map<std::string, device::PeerView> views_;  // of their memory, by handle
  // What handing over takes by how much memory is touched, with caches as they are, and after a flush.
  struct Idle {
    std::size_t touched = 0;
    Nanoseconds hot = Nanoseconds::max(), cold = Nanoseconds::max();
  };
  std::vector<Idle> idle_;
  std::size_t touched_ = 0;  // by this call: its inputs and outputs
  bool cold_ = false;
  std::uint32_t step_ = 0;
};

}  // namespace syslab::worker
