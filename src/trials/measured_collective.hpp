// A collective operation as data that a lab can run, check and time: buffers with content that is new at every sample,
// the operation, and what every rank must hold after it.
//
//   MeasuredCollective one(ranks, comm::Operation::all_reduce, 1'000'000, stream);
//   one.refresh(); one.call(); device::synchronize(stream);
//   one.error();                                          // 0, or the operation is wrong
//
// Contents are whole numbers from 0 to 255 that a formula gives by element, rank and sample, so that sums are exact in
// fp32 and every rank can tell all others' part of them. They are written and checked on the device of the ranks: a GPU
// that waits for the host goes to sleep, and the next call is slow.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "device/buffer.hpp"
#include "device/pattern.hpp"
#include "device/stream.hpp"
#include "trials/collective_content.hpp"

namespace syslab::parallel {

// Whether an operation of this name is one that can be measured so: all_reduce, reduce_scatter, all_gather, broadcast.
// Error(usage) with their names for another.
comm::Operation parse_collective(std::string_view name);

// Bus bandwidth = bytes / time · this: what a rank's link carries, whatever the number of ranks. 2(n−1)/n for
// all_reduce, (n−1)/n for reduce_scatter and all_gather, 1 for broadcast. Bytes are those of the larger buffer. Source:
// NVIDIA's nccl-tests, doc/PERFORMANCE.md.
double bus_factor(comm::Operation operation, int ranks);

// Error(usage) for fewer bytes than an fp32, or, of reduce_scatter and all_gather, than one for each rank.
void check_payload(comm::Operation operation, std::int64_t bytes, int ranks);

class MeasuredCollective {
 public:
  using AllReduce = std::function<void(const TensorView& buffer, device::Stream stream)>;

  // Of `bytes` of fp32, rounded down to whole elements, and for reduce_scatter and all_gather to as many for each rank;
  // at least one element a rank. `instead`: another all-reduce, which is measured in place of the
  // communicator's. `ranks` and `stream` must outlive it; the destructor waits for a CPU queue.
  MeasuredCollective(comm::Communicator& ranks, comm::Operation operation, std::int64_t bytes, device::Stream stream,
                     AllReduce instead = {});

  std::int64_t bytes() const;  // really moved: of the larger buffer

  // New content; waits. `calls` will come before error(): an all-reduce of what an all-reduce has left multiplies by
  // the number of ranks, and contents are scaled down by a power of two so that twenty calls of 64 ranks stay finite.
  void refresh(int calls = 1);
  void call();  // queued

  // Where call() leaves this rank's result, which refresh() fills with NaN unless the call computes in it.
  std::vector<device::Elements> results() const;
  // Largest |found − expected| over all elements of this rank's result, relative to the largest expected. After as many
  // calls as refresh() was given, and after a wait for the stream.
  double error() const;
  // Of error(): 0, but where repeated sums round, which those over a number of ranks that is no power of two do: each
  // call then adds at most n − 1 roundings (Higham, Accuracy and Stability, (3.4)).
  double tolerance() const;
  std::string what() const;  // "all_reduce of 250000 fp32 elements over 2 ranks, sample 3"

 private:
  const device::Buffer& result() const;

  comm::Communicator& ranks_;
  device::Stream stream_;
  AllReduce instead_;
  CollectiveContent content_;
  device::Buffer all_, part_;
  device::AwaitsQueues awaits_;
  int calls_ = 1;
};

}  // namespace syslab::parallel
