// Operations that a device does in its streams, each between two marks: how far they have come is asked of the marks,
// and told to the flight recorder.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/call.hpp"
#include "comm/flight_recorder.hpp"
#include "device/event.hpp"

namespace syslab::comm {

class MarkedWork {
 public:
  // `failed`: whether the communicator has; what is aborted comes to its end as well, and is not done.
  MarkedWork(device::Place place, FlightRecorder& recorder, std::function<bool()> failed);

  // The mark before what is queued as one, in the stream of `calls`; it waits for the one before it, should that be in
  // another stream.
  void begin(std::span<const Call> calls);
  void end();  // and the mark behind it

  // Does nothing while another thread is at it, which may be held up by a device that does not answer.
  void poll();
  std::size_t pending() const;
  std::uint64_t done() const;  // Call::work of the last that is

 private:
  struct Marked {
    std::vector<Call> calls;
    device::Event start, end;
    bool begun = false;
    explicit Marked(device::Place place) : start(place), end(place) {}
  };

  device::Place place_;
  FlightRecorder& recorder_;
  std::function<bool()> failed_;
  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<Marked>> pending_;
  std::vector<std::unique_ptr<Marked>> spare_;
  std::unique_ptr<Marked> opened_;
  std::uint64_t done_ = 0;
};

}  // namespace syslab::comm
