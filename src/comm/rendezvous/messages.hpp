// Messages on a socket: eight bytes of magic each way when it opens, then frames of a length and that many bytes. The
// store and the control plane speak it, each with its own fields.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>

#include "comm/rendezvous/socket.hpp"

namespace syslab::comm {

// Numbers and texts in a row, written and read in the same order.
class Packet {
 public:
  Packet& operator<<(std::uint64_t number);
  Packet& operator<<(std::string_view text);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class PacketReader {
 public:
  explicit PacketReader(std::string_view bytes) : left_(bytes) {}  // read where they are
  PacketReader(std::string&&) = delete;
  // Error(comm) when the packet is shorter than its reader expects: another version's, or nobody's.
  std::uint64_t number();
  std::string text();
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view take(std::size_t count);
  std::string_view left_;
};

// Bytes as they came, cut into messages.
class MessageBuffer {
 public:
  std::string& bytes() { return bytes_; }
  enum class State { message, incomplete, foreign };  // foreign: the other end does not speak this
  State take(std::string& payload);
  bool greeted() const { return greeted_; }
  // A first message must be short: a stranger must not make us wait for gigabytes.
  void trust() { longest_ = kLongest; }

 private:
  static constexpr std::uint32_t kLongestFirst = 64U << 10, kLongest = 64U << 20;
  std::string bytes_;
  bool greeted_ = false;
  std::uint32_t longest_ = kLongestFirst;
};

std::string framed(std::string_view payload);
std::string_view greeting();  // the magic

// One end of a conversation. Not for two threads at once.
class MessageClient {
 public:
  MessageClient() = default;
  explicit MessageClient(FileDescriptor socket);  // greets

  explicit operator bool() const { return static_cast<bool>(socket_); }
  bool send(const Packet& packet, Deadline deadline);  // false: the other end is gone
  struct Message {
    Received state = Received::end;  // `end` also for one that is no server of ours
    std::string payload;
  };
  Message receive(Deadline deadline, int wake = -1);
  bool foreign() const { return foreign_; }
  void close() { socket_.reset(); }

 private:
  FileDescriptor socket_;
  MessageBuffer buffer_;
  bool foreign_ = false;
};

// Serves any number of clients on a thread of its own. Whoever does not greet within some seconds, or says what is no
// message, is closed without a word.
class MessageServer {
 public:
  using Peer = std::uint64_t;
  struct Handler {  // called on the server's thread
    virtual ~Handler() = default;
    virtual void on_message(Peer peer, std::string_view payload) = 0;
    virtual void on_gone(Peer peer) = 0;  // not for those that we closed
    virtual void on_tick() = 0;           // five times a second
  };

  MessageServer(FileDescriptor listener, Handler& handler);
  MessageServer(const MessageServer&) = delete;
  MessageServer& operator=(const MessageServer&) = delete;
  ~MessageServer();  // sends what was queued, as far as it is taken within a moment

  // On the server's thread. No error when the peer is gone.
  void send(Peer peer, const Packet& packet);
  void close(Peer peer);  // after what was sent
  void trust(Peer peer);  // its messages may be long

 private:
  struct Connection;
  void serve();
  void accept_all();
  void read_from(Connection& connection);
  void lose(Connection& connection);
  static bool write_to(Connection& connection);
  Connection* find(Peer peer) const;

  FileDescriptor listener_, wake_;
  Handler& handler_;
  mutable std::list<Connection> connections_;
  Peer next_ = 1;
  Deadline accept_at_{};  // not before: there was no descriptor or no memory for one more
  std::thread thread_;
};

}  // namespace syslab::comm
