// Work of the host in the order of a stream of the CPU.
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

// On a queue: `work` runs in the queue's thread after all that was put there before. On the CPU's plain stream: now, in
// this thread, and what it throws is thrown here. Error(internal) on a GPU's stream.
void enqueue(Stream stream, std::function<void()> work);

// What has failed in a queue of the CPU and was not thrown by synchronize() yet, in its own words; it stays there.
// Empty: nothing, or no queue.
std::string failure_of(Stream stream);

// For what the host does at once in the thread that calls it, out of every queue's order: Error(usage) on a queue,
// which says so of `work` and names the remedy. A GPU's stream passes.
void expect_plain(Stream stream, std::string_view work);

}  // namespace syslab::device
