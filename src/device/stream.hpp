// Streams with an owner, and waiting for them.
//
//   const OwnedStream stream({Kind::cuda, 0});
//   rung.forward(problem, args, workspace, stream.view());
//   synchronize(stream.view());
#pragma once

#include <utility>

#include "device/device.hpp"

namespace syslab::device {

// A stream of one device. On CUDA it and the default stream do not wait for each other. Error(device) if there is no
// such device.
class OwnedStream {
 public:
  OwnedStream() = default;  // the CPU's
  explicit OwnedStream(Place place);
  // A high-priority stream: its pending work is scheduled first. For communication, which others wait for. On the CPU
  // the plain stream.
  static OwnedStream urgent(Place place);
  // A CPU stream with its own thread (device/queue.hpp). Its owner's destructor waits for its work; failures that
  // synchronize() has not thrown by then are lost. Later use of the stream throws Error(internal); await_queue(), which
  // destructors call, terminates the process. (Use of a destroyed GPU stream is not detected.)
  static OwnedStream queue();
  OwnedStream(OwnedStream&& other) noexcept;
  OwnedStream& operator=(OwnedStream&& other) noexcept;
  ~OwnedStream();

  Stream view() const { return stream_; }
  operator Stream() const { return stream_; }  // NOLINT: owners lend their stream
  Place place() const { return place_; }

 private:
  Stream stream_;
  Place place_;
};

// The device that a stream's work runs on. Error(device) for a handle that is not a stream.
Place place_of(Stream stream);
bool is_capturing(Stream stream);  // its work is being recorded into a graph
bool is_idle(Stream stream);       // all its work is done

// Waits for the stream's work and throws its failure, if any. In a CPU queue the work behind a failure was dropped;
// after this call the queue works again.
void synchronize(Stream stream);
// Waits for all streams of the device, even undeclared ones, so that no side stream escapes. A failure in a CPU queue
// is thrown, and also kept for synchronize() of its stream.
void synchronize(Place place);
// For destructors that free host memory which work in a CPU queue may still use: waits until that work has ended, with
// or without failure. Ignores other streams: a GPU's memory is ordered by its streams.
void await_queue(Stream stream) noexcept;

// Calls await_queue() at the end of a scope or an object. Declare it after the memory that work in these streams uses,
// so that it is destroyed first, even on exceptions.
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
