#include "parallel/ring_all_reduce.hpp"

#include <array>

#include "comm/reduce.hpp"
#include "core/error.hpp"
#include "device/queue.hpp"

namespace syslab::parallel {
namespace {

constexpr comm::Purpose kRingPurpose{"benchmark", "ring"};

TensorView piece(const TensorView& buffer, const comm::OwnedPart& part) {
  std::byte* begin =
      static_cast<std::byte*>(buffer.data) + static_cast<std::size_t>(part.begin) * size_of(buffer.dtype);
  return {begin, buffer.dtype, {part.count()}};
}

}  // namespace

RingAllReduce::RingAllReduce(comm::Communicator& ranks, Ring ring, std::int64_t elements, DType dtype,
                             device::Stream stream)
    : ranks_(ranks), ring_(ring), elements_(elements), dtype_(dtype), stream_(stream), awaits_(stream) {
  if (ranks.kind() != device::Kind::cpu || stream.kind != device::Kind::cpu) {
    throw Error(ErrorKind::usage,
                "the ring of sends and receives adds on the CPU: join its ranks by shm, gloo or local");
  }
  const std::int64_t largest = ring == Ring::whole ? elements : comm::owned_part(elements, 0, ranks.size()).count();
  const std::size_t bytes = static_cast<std::size_t>(largest) * size_of(dtype);
  rooms_[0] = device::Buffer(bytes, "ring: arriving");
  if (ring == Ring::whole && ranks.size() > 2) rooms_[1] = device::Buffer(bytes, "ring: passing");
}

void RingAllReduce::run(const TensorView& buffer) {
  if (buffer.elements() != elements_ || buffer.dtype != dtype_) {
    throw Error(ErrorKind::usage, "a ring was made for another buffer than it is given");
  }
  ring_ == Ring::parts ? run_parts(buffer) : run_whole(buffer);
}

TensorView RingAllReduce::room(int which, std::int64_t elements) const {
  return {rooms_[which].data(), dtype_, {elements}};
}

void RingAllReduce::pass(const TensorView& sent, const TensorView& received) {
  const int size = ranks_.size(), rank = ranks_.rank();
  ranks_.begin_group();
  static_cast<void>(ranks_.send(sent, (rank + 1) % size, kRingPurpose, stream_));
  static_cast<void>(ranks_.receive(received, (rank + size - 1) % size, kRingPurpose, stream_));
  ranks_.end_group();
}

void RingAllReduce::add(const TensorView& to, const TensorView& from) {
  device::enqueue(stream_, [to, from] {
    const std::array<const void*, 2> sources{to.data, from.data};
    comm::reduce_in_order(sources, to.data, to.dtype, to.elements(), comm::Reduction::sum);
  });
}

// Part p is sent around the ring, starting with the rank after its owner: each rank adds its own values, and the owner
// ends up with the sum. A second round hands the sums to all ranks.
void RingAllReduce::run_parts(const TensorView& buffer) {
  const int n = ranks_.size(), rank = ranks_.rank();
  const auto part = [&](int number) { return piece(buffer, comm::owned_part(elements_, number % n, n)); };
  for (int done = 0; done + 1 < n; ++done) {
    const TensorView mine = part(rank + 2 * n - 2 - done);
    const TensorView arrived = room(0, mine.elements());
    pass(part(rank + 2 * n - 1 - done), arrived);
    add(mine, arrived);
  }
  for (int done = 0; done + 1 < n; ++done) pass(part(rank + n - done), part(rank + 2 * n - 1 - done));
}

void RingAllReduce::run_whole(const TensorView& buffer) {
  TensorView passing = buffer;  // sent before the first sum is added to it
  for (int done = 0; done + 1 < ranks_.size(); ++done) {
    const TensorView arrived = room(done % 2, elements_);
    pass(passing, arrived);
    add(buffer, arrived);
    passing = arrived;
  }
}

}  // namespace syslab::parallel
