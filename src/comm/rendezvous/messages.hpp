// Messages on an authenticated socket (comm/rendezvous/handshake.hpp). Each is a frame: its length, that many bytes,
// and a MAC of both and of the frame's number in its direction, under that direction's key. A frame that was altered,
// left out, sent again or moved ends the connection. The rendezvous, the control plane and the lab's lines to its
// agents speak it, each with its own fields. Nothing is hidden: who listens reads along.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "comm/rendezvous/reception.hpp"

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

// One direction, from the side that speaks.
class FrameWriter {
 public:
  explicit FrameWriter(const Key& key) : key_(key) {}
  std::string framed(std::string_view payload);

 private:
  Key key_;
  std::uint64_t next_ = 0;
};

// The same from the side that hears: bytes as they came, cut into messages.
class FrameReader {
 public:
  explicit FrameReader(const Key& key, std::string received = {}) : key_(key), bytes_(std::move(received)) {}
  std::string& bytes() { return bytes_; }
  enum class State { message, incomplete, forged };  // forged: not what the other end has sent, where it has sent it
  State take(std::string& payload);

 private:
  static constexpr std::uint32_t kLongest = 64U << 20;
  Key key_;
  std::uint64_t next_ = 0;
  std::string bytes_;
};

// One end of a conversation. Not for two threads at once.
class MessageClient {
 public:
  MessageClient() = default;
  MessageClient(FileDescriptor socket, const Session& session);
  explicit MessageClient(Admitted admitted);

  explicit operator bool() const { return static_cast<bool>(socket_); }
  int descriptor() const { return socket_.get(); }
  bool send(const Packet& packet, Deadline deadline);  // false: the other end is gone
  struct Message {
    Received state = Received::end;  // `end` also behind a frame that the other end has not sent
    std::string payload;
  };
  Message receive(Deadline deadline, int wake = -1);
  void close() { socket_.reset(); }

 private:
  FileDescriptor socket_;
  FrameWriter writer_{Key{}};
  FrameReader reader_{Key{}};
  bool forged_ = false;  // nothing behind such a frame is believed either
};

// A client of whoever knows the key at that address, tried again until the deadline; none, and why, where nobody does.
MessageClient connect_proven(const std::function<Connected(Deadline)>& connect, const Key& key, Deadline deadline,
                             std::string& why);

// Serves any number of clients on a thread of its own. Whoever does not prove that it knows the key, says nothing
// within some seconds of it, or sends what is no message, is closed without a word.
class MessageServer {
 public:
  using Peer = std::uint64_t;
  struct Handler {  // called on the server's thread
    virtual ~Handler() = default;
    virtual void on_message(Peer peer, std::string_view payload) = 0;
    virtual void on_gone(Peer peer) = 0;  // not for those that we closed
    virtual void on_tick() = 0;           // five times a second
  };

  MessageServer(FileDescriptor listener, const Key& key, Handler& handler);
  MessageServer(const MessageServer&) = delete;
  MessageServer& operator=(const MessageServer&) = delete;
  ~MessageServer();  // sends what was queued, as far as it is taken within a moment

  // On the server's thread. No error when the peer is gone.
  void send(Peer peer, const Packet& packet);
  void close(Peer peer);                                          // after what was sent
  std::size_t unproven() const { return reception_.unproven(); }  // on any thread

 private:
  struct Connection;
  void serve();
  void admit();
  void read_from(Connection& connection);
  void lose(Connection& connection);
  static bool write_to(Connection& connection);
  Connection* find(Peer peer) const;

  Reception reception_;
  FileDescriptor wake_;
  Handler& handler_;
  mutable std::list<Connection> connections_;
  Peer next_ = 1;
  std::thread thread_;
};

}  // namespace syslab::comm
