// Streams with an owner, and waiting for them.
//
//   const OwnedStream stream({Kind::cuda, 0});
//   rung.forward(problem, args, workspace, stream.view());
//   synchronize(stream.view());
#pragma once

#include <utility>

#include "device/device.hpp"

namespace syslab::device {

// A stream of one device. On CUDA it does not wait for the default stream, nor that for it. Error(device) where there
// is no such device.
class OwnedStream {
 public:
  OwnedStream() = default;  // the CPU's
  explicit OwnedStream(Place place);
  // Its work goes before that of other streams wherever both wait for room on the device: for communication, which
  // others wait for. On the CPU the plain stream.
  static OwnedStream urgent(Place place);
  // A stream of the CPU with a thread of its own (device/queue.hpp). Its owner, when destroyed, waits for its work;
  // what failed then and was not asked for by synchronize() is lost. Whoever uses the stream after that is told so: by
  // Error(internal), and await_queue(), which destructors call, by the end of the process. A GPU's would be used as if
  // it were still there.
  static OwnedStream queue();
  OwnedStream(OwnedStream&& other) noexcept;
  OwnedStream& operator=(OwnedStream&& other) noexcept;
  ~OwnedStream();

  Stream view() const { return stream_; }
  operator Stream() const { return stream_; }  // NOLINT: lending is what an owner is for
  Place place() const { return place_; }

 private:
  Stream stream_;
  Place place_;
};

// Which device a stream's work runs on: how a stream of another device is told. Error(device) for a handle that is no
// stream.
Place place_of(Stream stream);
bool is_capturing(Stream stream);  // its work is being recorded into a graph
bool is_idle(Stream stream);       // all its work is done

// Waits for the stream's work. What failed in it is thrown here. In a queue of the CPU the work behind a failure was
// dropped, and after this call the queue works again.
void synchronize(Stream stream);
// Waits for all streams of the device, also those that nobody told of: no side stream escapes. What failed in a queue
// of the CPU is thrown, and stays for synchronize() of its stream.
void synchronize(Place place);
// For destructors, before memory of the host goes that work in a queue of the CPU may still use: waits until that work
// has ended, well or not. Other streams it leaves alone: a GPU's memory is ordered by its streams.
void await_queue(Stream stream) noexcept;

// await_queue() at the end of a scope or of an object. Declared behind the memory that work in these streams uses, it
// goes before it, whatever is thrown.
class AwaitsQueues {
 public:
  explicit AwaitsQueues(Stream stream, Stream other = {}) : stream_(stream), other_(other) {}
  AwaitsQueues(AwaitsQueues&& from) noexcept
      : stream_(std::exchange(from.stream_, {})), other_(std::exchange(from.other_, {})) {}
  AwaitsQueues& operator=(AwaitsQueues&&) = delete;
  ~AwaitsQueues() {
    await_queue(stream_);
    await_queue(other_);
  }

 private:
  Stream stream_, other_;
};

}  // namespace syslab::device
