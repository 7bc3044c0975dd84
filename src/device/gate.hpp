// Holds a stream back until the host has queued all work that belongs together, so that the host's launch time does not
// count in the GPU's time.
//
//   Gate gate(stream);
//   gate.close(); … queue work … gate.open();
#pragma once

#include <cstdint>

#include "core/text/units.hpp"
#include "device/buffer.hpp"
#include "device/device.hpp"

namespace syslab::device {

// On the CPU's stream it does nothing. A closed gate opens by itself after `limit`: otherwise work that makes the host
// wait for the stream would deadlock. It also opens when its owner is destroyed.
class Gate {
 public:
  explicit Gate(Stream stream, Nanoseconds limit = std::chrono::milliseconds(20));
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate();

  void close();
  void open() noexcept;
  // How many gates have opened by themselves so far; exact once the stream is idle.
  std::uint64_t expired() const;

 private:
  Stream stream_;
  Nanoseconds limit_;
  Buffer words_;  // pinned: the ticket that the GPU waits for, and the count of expired gates
  std::uint64_t closed_ = 0;
};

}  // namespace syslab::device
