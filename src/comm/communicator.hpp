// Communication among ranks: collectives, queued on a stream like any other work.
//
//   comm::Communicator& ranks = …;                       // local, shm, nccl, copy_engines: alike to who uses it
//   ready.record(compute);
//   ready.before(communication);                         // the reduction waits for the gradient, the host for nobody
//   ranks.all_reduce(gradient, Reduction::sum, {"gradient", "bucket 3"}, communication);
//   reduced.record(communication);
//   reduced.before(compute);
//
// Rules that every backend keeps:
// * An operation is queued after what is in `stream` and returns at once, unless the stream is the CPU's plain one
//   (device/device.hpp), where work is done when its call returns. Memory belongs to the operation until it is done.
// * A communicator runs one operation at a time, in call order, whatever their streams.
// * Every rank calls the same operations in the same order with the same counts, dtypes, roots and purposes. If
//   signatures are checked (`local` and `shm`: always; otherwise CommunicatorOptions::check_signatures), the first
//   difference is an Error(comm) on every rank that names both sides, before any data moves.
// * Buffers are contiguous, of any alignment that their dtype allows; counts are 64-bit. An operation on zero elements
//   is legal and moves nothing, on all ranks.
// * A single rank: every operation is a no-op or a copy, and no backend is called.
// * The result of a reduction is the same bits on every rank. `local` and `shm` sum in rank order, so that the result
//   does not depend on how a buffer is split either; bf16 and f16 are summed in fp32 and rounded once. A NaN on any
//   rank gives NaN, for max and min too.
// * If a rank fails, hangs or leaves, every other rank's next wait ends within the limit with an Error(comm) that names
//   rank, operation and number, and the rank at fault (core/rank_error.hpp). After that every operation throws the same
//   error. On a CPU queue the queue keeps the error for device::synchronize(); wait() throws it too.
// * Only one host thread at a time calls operations; any thread may call abort(), failed(), counters() and recorder().
// * Before destroying a communicator, wait for its work or call abort().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/call.hpp"
#include "comm/counters.hpp"
#include "comm/failure.hpp"
#include "comm/flight_recorder.hpp"
#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::comm {

// A queued operation: the `sequence`-th of this rank on its communicator, counted from 1.
struct Work {
  std::uint64_t sequence = 0;
};

struct CommunicatorOptions {
  std::chrono::milliseconds limit = kLimitOfWaits;  // for any wait for other ranks; tests use at least 2 s
  bool check_signatures = false;                    // for backends that do not always check
};

// Monitors a communicator from outside (the control plane); ends before the communicator is destroyed.
class Companion {
 public:
  virtual ~Companion() = default;
  virtual void set_phase(std::string_view phase, std::uint64_t step) = 0;
  virtual void leave() noexcept = 0;  // after this it must not touch the communicator
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const CommunicatorOptions& options() const { return options_; }
  virtual std::string_view backend() const = 0;                    // "shm"
  virtual device::Kind kind() const { return device::Kind::cpu; }  // device of its memory and streams

  // buffer = the reduction over all ranks of their buffers. f32, f64 (which counts whole numbers to 2^53), bf16, f16.
  // All operations: Error(usage) for invalid calls (a strided buffer, another device's stream, no such rank).
  Work all_reduce(const TensorView& buffer, Reduction reduction, const Purpose& purpose, device::Stream stream);
  // part = the reduction over ranks of elements [rank·count, (rank+1)·count) of `all` (size·count). In place if `part`
  // is that piece of this rank's `all`; the rest of `all` is then undefined.
  Work reduce_scatter(const TensorView& all, const TensorView& part, Reduction reduction, const Purpose& purpose,
                      device::Stream stream);
  // Elements [r·count, (r+1)·count) of `all` = rank r's part. In place if `part` is its own piece of `all`.
  Work all_gather(const ConstTensorView& part, const TensorView& all, const Purpose& purpose, device::Stream stream);
  Work broadcast(const TensorView& buffer, int root, const Purpose& purpose, device::Stream stream);

  // Between two ranks.
  Work send(const ConstTensorView& buffer, int to, const Purpose& purpose, device::Stream stream);
  Work receive(const TensorView& buffer, int from, const Purpose& purpose, device::Stream stream);
  // Calls between these form a group: sends and receives, so that neighbours may both send first; or collectives of
  // independent buffers, which then cost one launch instead of many. A group uses one stream and is queued by
  // end_group().
  void begin_group();
  void end_group();

  // A host operation: returns when every rank has arrived. Error(comm) at the limit, naming the missing ranks. Does not
  // wait for streams.
  void barrier();
  // A host operation: returns a small text from every rank, by rank; used to agree on sizes, plans, versions.
  std::vector<std::string> exchange(std::string_view text);

  // Waits on the host until the operation and all before it are done. Error(comm) at the limit.
  void wait(Work work);

  // Ends the communication of all ranks for `reason`: every wait, here or on other ranks, throws. Does not throw
  // itself.
  void abort(std::string_view reason) noexcept;
  // The same with a complete message, which names the rank itself.
  void fail(std::string_view text, const Blame& blame) noexcept;
  bool failed() const {
    if (!failure_->failed()) hear();
    return failure_->failed();
  }
  std::string failure() const { return failure_->text(); }
  Blame blame() const { return failure_->blame(); }
  void throw_if_failed() const {  // RankError with the fault as seen from this rank
    if (failed()) failure_->throw_if_failed(rank_);
  }

  // Where this rank is, for messages about ranks that keep others waiting: "forward", 118.
  void set_phase(std::string_view phase, std::uint64_t step);
  // Keeps `companion` until this communicator ends.
  void accompany(std::shared_ptr<Companion> companion) { companion_ = std::move(companion); }

  // Polls the backend if necessary, to update the recorder and to find failures that nobody waits for. Any thread.
  virtual void look() noexcept {}

  const Counters& counters() const { return counters_; }
  const FlightRecorder& recorder() const { return recorder_; }

 protected:
  // Ranks of one process may share a `failure`, so that all see each other's failures.
  Communicator(int rank, int size, CommunicatorOptions options,
               std::shared_ptr<Failure> failure = std::make_shared<Failure>());

  // Implemented by backends. The calls are valid, counted and in the recorder; `size` is at least 2 and there are
  // elements. One call, or a group on one stream: sends and receives, or collectives if the backend supports groups of
  // them.
  virtual void queue(std::span<const Call> calls) = 0;
  // A call that involves no other rank: at most a copy from `in` to `out`, in the stream's order (copy_alone() below).
  virtual void queue_alone(const Call& call) = 0;
  // Waits until this rank's operations up to this one are done; throws at the limit or on failure.
  virtual void wait_until_done(std::uint64_t work) = 0;
  // A barrier or an exchange, in the calling thread. `size` is at least 2. Returns the texts by rank.
  virtual std::vector<std::string> exchange_now(const Call& call, std::string_view text) = 0;
  // Notifies the other ranks and wakes waiters here. Called once, after the failure has been set.
  virtual void spread(std::string_view failure) noexcept = 0;
  // Sets the failure if another process has reported one, so that failed() sees it without calling an operation. Any
  // thread, at any time.
  virtual void hear() const {}
  // Whether queue() takes several collectives at once; otherwise they come one by one.
  virtual bool groups_collectives() const { return false; }
  // Whether queue() compares signatures itself; otherwise they are exchanged before it if the options ask for it.
  virtual bool compares_signatures() const { return false; }

  // For a backend's destructor, while all members still exist and its operations are done: the companion leaves.
  void part() noexcept;
  Failure& failure_state() const { return *failure_; }
  Counters& counted() { return counters_; }
  FlightRecorder& recorded() { return recorder_; }

 private:
  Work submit(Call call);
  Call begin(Operation operation, const ConstTensorView& buffer, const Purpose& purpose, device::Stream stream);
  void give_to_backend(std::span<const Call> calls);
  std::vector<std::string> of_host(Operation operation, std::string_view text);
  void expect_rank(Operation operation, int rank, bool another) const;
  void compare_signatures(const Signature& signature);

  int rank_, size_;
  CommunicatorOptions options_;
  std::shared_ptr<Failure> failure_;
  Counters counters_;
  FlightRecorder recorder_;
  std::uint64_t works_ = 0, collectives_ = 0, of_host_ = 0;
  std::vector<std::uint64_t> sent_, received_;  // by rank
  bool grouped_ = false;
  std::vector<Call> group_;
  std::shared_ptr<Companion> companion_;
};

// queue_alone() for any device: queues the copy, if any, on the call's stream.
void copy_alone(const Call& call);

}  // namespace syslab::comm
