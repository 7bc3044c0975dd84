// A rank's search for the rank 0 of its job among several addresses and ports, all of which are tried at once: whoever
// else listens on one of them, and says nothing for as long as it likes, keeps nobody waiting.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "comm/rendezvous/tcp_server.hpp"

namespace syslab::comm {

class TcpSearch {
 public:
  TcpSearch(const std::vector<std::string>& hosts, int first_port, int last_port, const Key& key,
            RendezvousHello hello);

  // A client that was let in, or none at the deadline. RankError when this job refuses this rank.
  MessageClient find(Deadline deadline);
  // "; there are 29501: somebody who does not answer, 29502: …", of what was there instead; empty: nothing.
  std::string met() const;
  bool met_impostor() const;

 private:
  enum class Stage { resting, connecting, proving, proven, asked };
  struct Knock {
    TcpAddress address;
    int port = 0;
    Stage stage = Stage::resting;
    Deadline until{};  // of the stage
    FileDescriptor socket;
    Handshake handshake;
    std::string received;
    MessageClient client;
    std::string seen;  // what was there last
  };

  // True: it was let in.
  bool go_on(Knock& knock);
  void prove(Knock& knock);
  void ask(Knock& knock);
  bool hear_answer(Knock& knock);
  void rest(Knock& knock, std::string_view seen);
  void enter(Knock& knock, Stage stage);
  static pollfd waiting_for(const Knock& knock);

  const Key key_;
  const RendezvousHello hello_;
  std::vector<Knock> knocks_;
};

}  // namespace syslab::comm
