// Rank 0's side of the TCP rendezvous.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "comm/rendezvous/messages.hpp"
#include "comm/rendezvous/process_name.hpp"
#include "comm/rendezvous/rendezvous.hpp"

namespace syslab::comm {

// First words of a message. Requests carry a number that the answer repeats.
namespace rendezvous_message {
inline constexpr std::uint64_t kVersion = 1;
enum : std::uint64_t { hello, confirm, set, remove, find, peek, fail, bye };  // to the server
enum : std::uint64_t { accepted, stranger, refused, value, absent, failed };  // from it
}  // namespace rendezvous_message

// What a rank says of itself when it comes.
struct RendezvousHello {
  std::uint64_t version = rendezvous_message::kVersion;
  std::string token;
  int size = 0, rank = 0;
  ProcessName process;
  std::string build;
};
Packet to_packet(const RendezvousHello& hello);

class TcpRendezvousServer : MessageServer::Handler {
 public:
  TcpRendezvousServer(FileDescriptor listener, const Key& key, RendezvousHello own);

  // Until all ranks have left, the job has failed or the deadline has passed: whoever is not done yet still needs us.
  void wait_until_left(Deadline deadline);
  std::size_t unproven() const { return server_.unproven(); }

 private:
  using Peer = MessageServer::Peer;
  struct Member {
    Peer peer = 0;
    ProcessName process;
    bool confirmed = false;  // it heard that it was accepted: no stranger that timed out
    bool left = false;       // said so
    bool gone = false;       // without a word
  };
  struct Waiter {
    Peer peer = 0;
    std::uint64_t request = 0;
  };

  void on_message(Peer peer, std::string_view payload) override;
  void on_gone(Peer peer) override;
  void on_tick() override {}
  void tell_whether_over();

  void meet(Peer peer, PacketReader& hello);
  void keep(const std::string& key, std::string value);
  void fail(const std::string& reason);
  bool complete() const;
  std::map<int, Member>::iterator member(Peer peer);

  const RendezvousHello own_;
  std::map<int, Member> members_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Waiter>> waiters_;
  std::string failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false, failed_ = false;  // under the mutex; all else is the server's thread's
  MessageServer server_;                // last: its thread uses all of the above
};

}  // namespace syslab::comm
