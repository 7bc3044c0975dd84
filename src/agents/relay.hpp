// Carries a worker's standard streams between descriptors of this side and the authenticated connection to the other:
// one on the agent's side, at the worker's pipes, and one on the lab's, at the descriptors that it reads the worker by.
// A thread, which sleeps while there are no data. While one side accepts no data, the other is not read: nothing piles
// up.
//
//   message    stream 0, 1 or 2; bytes, or none: it has ended
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/rendezvous/messages.hpp"

namespace syslab::agents {

class Relay {
 public:
  enum class Way { to_peer, from_peer };
  struct Stream {
    std::uint64_t number = 0;
    FileDescriptor end;  // does not block
    Way way = Way::to_peer;
  };

  Relay(comm::MessageClient connection, std::vector<Stream> streams);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();  // at once: data still under way are lost

  // All that this side sends has ended and was sent, or the other side is gone.
  bool done() const { return done_; }

 private:
  void run();
  bool carry_to_peer(Stream& stream);  // false: the other side is gone
  bool carry_from_peer();
  void write(Stream& stream, std::string_view bytes) const;
  bool sends() const;

  comm::MessageClient connection_;
  std::vector<Stream> streams_;
  FileDescriptor stop_;
  std::atomic<bool> done_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace syslab::agents
