// Operations that run in a device's streams, each between two marks; their progress is read from the marks and recorded
// in the flight recorder.
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
  // `failed`: whether the communicator has failed; aborted operations also reach their end mark but do not count as
  // done.
  MarkedWork(device::Place place, FlightRecorder& recorder, std::function<bool()> failed);

  // The mark before calls queued together, in their stream; it waits for the previous one if that is in another stream.
  void begin(std::span<const Call> calls);
  void end();  // and the mark behind it

  // Does nothing while another thread is polling, which may be blocked by an unresponsive device.
  void poll();
  std::size_t pending() const;
  std::uint64_t done() const;  // Call::work of the last completed operation

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
