// Host work in the order of a CPU stream.
//
//   const OwnedStream communication = OwnedStream::queue();
//   ready.before(communication);
//   enqueue(communication, [=] { sum(gradients); });
//   done.record(communication);
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "device/device.hpp"

namespace syslab::device {

// On a queue: `work` runs in the queue's thread after all earlier work. On the CPU's plain stream it runs now, in this
// thread, and its exceptions propagate. Error(internal) on a GPU's stream.
void enqueue(Stream stream, std::function<void()> work);

// The message of a failure in a CPU queue that synchronize() has not thrown yet; it stays there. Empty: no failure, or
// not a queue.
std::string failure_of(Stream stream);

// For host work that runs at once in the calling thread, outside any queue's order: Error(usage) on a queue, naming
// `work` and the remedy. A GPU's stream passes.
void expect_plain(Stream stream, std::string_view work);

}  // namespace syslab::device
