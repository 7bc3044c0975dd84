// The side of the control plane that knows all ranks: rank 0's, on a thread of its own. It hears how far each rank is
// and who fails, is gone or falls silent; it decides once why all end, and tells all.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "comm/rendezvous/ending.hpp"
#include "comm/rendezvous/messages.hpp"

namespace syslab::comm {

namespace control_message {
enum : std::uint64_t { hello, beat, ask, fail, time_out, bye };   // to the coordinator
enum : std::uint64_t { welcome, alive, told, ending, all_left };  // from it
}  // namespace control_message

Packet& operator<<(Packet& packet, const Progress& progress);
Progress read_progress(PacketReader& packet);
Packet& operator<<(Packet& packet, const Ending& ending);
Ending read_ending(PacketReader& packet);

class ControlCoordinator : MessageServer::Handler {
 public:
  ControlCoordinator(FileDescriptor listener, const Key& key, int size, std::chrono::milliseconds limit);

 private:
  using Peer = MessageServer::Peer;
  struct Rank {
    Peer peer = 0;
    std::string process;
    Progress progress;
    Deadline heard;
    bool left = false, gone = false;
  };

  void on_message(Peer peer, std::string_view payload) override;
  void on_gone(Peer peer) override;
  void on_tick() override;

  void end(Ending ending);
  void look_for_leavers(const Progress& waiting);
  // Who keeps others waiting in the operation that `waiting` stands in; time_out ending.
  Ending diagnose(int reporter, const Progress& waiting) const;
  std::string whereabouts(const Rank& rank) const;
  double silent_seconds(const Rank& rank) const;

  const int size_;
  const std::chrono::milliseconds limit_;
  std::map<int, Rank> ranks_;
  bool ended_ = false;
  Deadline last_tick_ = Clock::now();
  MessageServer server_;  // last: its thread uses all of the above
};

}  // namespace syslab::comm
