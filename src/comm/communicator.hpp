// Ranks that work together: collectives, queued on a stream like any other work.
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
// * A communicator does one operation at a time, in the order of its calls, on whatever streams they are.
// * Every rank calls the same operations in the same order with the same counts, dtypes, roots and purposes. Where
//   signatures are checked (`local` and `shm`: always; elsewhere CommunicatorOptions::check_signatures) the first
//   difference is an Error(comm) on every rank that names both sides, before anything moves.
// * Buffers are contiguous, of any alignment that their dtype allows; counts are 64-bit. An operation on no elements is
//   legal and moves nothing, on all ranks.
// * One rank alone: every operation is done here, as nothing or as a copy, and no backend is called.
// * The result of a reduction is the same bits on every rank. `local` and `shm` sum in the order of ranks, so that the
//   result does not depend on how a buffer is cut either; bf16 and f16 are summed in fp32 and rounded once. A NaN of
//   any rank makes a NaN, for max and min too.
// * A rank that fails, hangs or leaves makes every other rank's next wait end within the limit with an Error(comm) that
//   names rank, operation and number, and says whose fault it is (core/rank_error.hpp). After that every operation
//   throws the same. On a queue of the CPU the error is kept by the queue, as device::synchronize() tells it; wait()
//   throws it too.
// * One thread of the host at a time calls operations; abort(), failed(), counters() and recorder() are for any.
// * Who destroys a communicator has waited for its work, or given it up by abort().
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

// An operation that was queued: the `sequence`-th of this rank on its communicator, counted from 1.
struct Work {
  std::uint64_t sequence = 0;
};

struct CommunicatorOptions {
  std::chrono::milliseconds limit{60'000};  // of any wait for other ranks; 2 s is the least that tests use
  bool check_signatures = false;            // where the backend does not anyway
};

// Who watches over a communicator from beside it (the control plane), and is done before it is destroyed.
class Companion {
 public:
  virtual ~Companion() = default;
  virtual void set_phase(std::string_view phase, std::uint64_t step) = 0;
  virtual void leave() noexcept = 0;  // after this it does not touch the communicator
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
  virtual device::Kind kind() const { return device::Kind::cpu; }  // whose memory and streams it works on

  // buffer = the reduction over all ranks of their buffers. f32, f64 (which counts whole numbers to 2^53), bf16, f16.
  // All of these: Error(usage) for what no rank could do (a strided buffer, another device's stream, no such rank).
  Work all_reduce(const TensorView& buffer, Reduction reduction, const Purpose& purpose, device::Stream stream);
  // part = the reduction over ranks of elements [rank·count, (rank+1)·count) of `all` (size·count). In place where
  // `part` is that piece of this rank's `all`; then the rest of `all` is left with anything.
  Work reduce_scatter(const TensorView& all, const TensorView& part, Reduction reduction, const Purpose& purpose,
                      device::Stream stream);
  // Elements [r·count, (r+1)·count) of `all` = rank r's part. In place where `part` is its own piece of `all`.
  Work all_gather(const ConstTensorView& part, const TensorView& all, const Purpose& purpose, device::Stream stream);
  Work broadcast(const TensorView& buffer, int root, const Purpose& purpose, device::Stream stream);

  // Between two ranks.
  Work send(const ConstTensorView& buffer, int to, const Purpose& purpose, device::Stream stream);
  Work receive(const TensorView& buffer, int from, const Purpose& purpose, device::Stream stream);
  // What stands between these goes together: sends and receives, so that neighbours may both send first; or
  // collectives of buffers that have nothing to do with each other, which cost one start instead of many. A group is of
  // one stream, and queued by end_group().
  void begin_group();
  void end_group();

  // Of the host: returns when every rank has come here. Error(comm) at the limit, naming who has not. Waits for no
  // stream's work.
  void barrier();
  // Of the host: a small text of every rank, by rank. What agreements are made of (sizes, plans, versions).
  std::vector<std::string> exchange(std::string_view text);

  // Waits on the host until the operation and all before it are done. Error(comm) at the limit.
  void wait(Work work);

  // Ends the communication of all ranks for `reason`: whoever waits, here or elsewhere, throws. Does not throw itself.
  void abort(std::string_view reason) noexcept;
  // The same in the words of who found out, as they are: they name the rank themselves.
  void fail(std::string_view text, const Blame& blame) noexcept;
  bool failed() const {
    if (!failure_->failed()) hear();
    return failure_->failed();
  }
  std::string failure() const { return failure_->text(); }
  Blame blame() const { return failure_->blame(); }
  void throw_if_failed() const {  // RankError: whose fault it is, as this rank has to tell it
    if (failed()) failure_->throw_if_failed(rank_);
  }

  // Where this rank is, for messages about who keeps others waiting: "forward", 118.
  void set_phase(std::string_view phase, std::uint64_t step);
  // Keeps `companion` until this communicator ends.
  void accompany(std::shared_ptr<Companion> companion) { companion_ = std::move(companion); }

  // Brings the recorder up to date, and finds failures that nobody waits for, where that takes asking. For any thread.
  virtual void look() noexcept {}

  const Counters& counters() const { return counters_; }
  const FlightRecorder& recorder() const { return recorder_; }

 protected:
  // Ranks of one process may share a `failure`, so that what one of them meets all of them know.
  Communicator(int rank, int size, CommunicatorOptions options,
               std::shared_ptr<Failure> failure = std::make_shared<Failure>());

  // What a backend does. The calls are valid, counted and in the recorder; `size` is at least 2 and there are elements.
  // One call, or a group of one stream: sends and receives, or collectives where the backend wants them so.
  virtual void queue(std::span<const Call> calls) = 0;
  // A call that involves no other rank: at most a copy from `in` to `out`, in the stream's order (copy_alone() below).
  virtual void queue_alone(const Call& call) = 0;
  // Until this rank's works up to this one are done; throws at the limit or when failed.
  virtual void wait_until_done(std::uint64_t work) = 0;
  // A barrier or an exchange, in the calling thread. `size` is at least 2. Returns the texts by rank.
  virtual std::vector<std::string> exchange_now(const Call& call, std::string_view text) = 0;
  // Lets the other ranks know, and wakes who waits here. Called once, when the failure has been set.
  virtual void spread(std::string_view failure) noexcept = 0;
  // Sets the failure where another process has left one: whoever asks failed() need not call an operation to learn of
  // it. Any thread, at any time.
  virtual void hear() const {}
  // Whether queue() takes several collectives at once; otherwise they come one by one.
  virtual bool groups_collectives() const { return false; }
  // Whether queue() compares signatures itself; otherwise they are exchanged before it where the options ask for it.
  virtual bool compares_signatures() const { return false; }

  // In a backend's destructor, while all of it still stands and its own works are done: the companion leaves.
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

// What queue_alone() has to do on any device: the copy, where there is one, queued on the call's stream.
void copy_alone(const Call& call);

}  // namespace syslab::comm
