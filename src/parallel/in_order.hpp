// Kernels in the order of any stream. Those of the host run at once in the thread that calls them, so that on a queue
// of the CPU the call itself is what is queued.
#pragma once

#include <utility>

#include "device/queue.hpp"

namespace syslab::parallel {

// `work(stream)` queues kernels; it is given the stream to queue them on. It is copied and may outlive the call.
template <typename Work>
void in_order(device::Stream stream, Work work) {
  if (stream.kind == device::Kind::cuda) return work(stream);
  device::enqueue(stream, [work = std::move(work)] { work(device::Stream{}); });
}

}  // namespace syslab::parallel
