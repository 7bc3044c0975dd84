#include "comm/rendezvous/messages.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstWordLimit = 5s;
constexpr std::size_t kLength = 4;  // bytes of the length before each frame
constexpr auto kRetry = 50ms;
constexpr auto kTick = 200ms;      // rare, so that measurements on this machine are not disturbed
constexpr auto kFarewell = 300ms;  // for what is queued when a server stops

std::string little_endian(std::uint64_t number, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>((number >> (8 * i)) & 0xff);
  return text;
}

std::uint64_t from_little_endian(std::string_view text) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    number |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
  }
  return number;
}

}  // namespace

Packet& Packet::operator<<(std::uint64_t number) {
  bytes_ += little_endian(number, 8);
  return *this;
}

Packet& Packet::operator<<(std::string_view text) {
  bytes_ += little_endian(text.size(), 4);
  bytes_ += text;
  return *this;
}

std::string_view PacketReader::take(std::size_t count) {
  if (left_.size() < count) throw Error(ErrorKind::comm, "a message between ranks ends early: are all of one version?");
  const std::string_view taken = left_.substr(0, count);
  left_.remove_prefix(count);
  return taken;
}

std::uint64_t PacketReader::number() { return from_little_endian(take(8)); }

std::string PacketReader::text() {
  const auto size = static_cast<std::size_t>(from_little_endian(take(4)));
  return std::string(take(size));
}

std::string FrameWriter::framed(std::string_view payload) {
  std::string frame = little_endian(payload.size(), kLength).append(payload);
  return frame.append(bytes_of(mac_of(key_, {little_endian(next_++, 8), frame})));
}

FrameReader::State FrameReader::take(std::string& payload) {
  if (bytes_.size() < kLength) return State::incomplete;
  const auto size = static_cast<std::uint32_t>(from_little_endian(std::string_view(bytes_).substr(0, kLength)));
  if (size > kLongest) return State::forged;
  const std::size_t end = kLength + size;
  if (bytes_.size() < end + sizeof(Mac)) return State::incomplete;
  const std::string_view all(bytes_);
  if (!same(mac_of(key_, {little_endian(next_, 8), all.substr(0, end)}), all.substr(end, sizeof(Mac)))) {
    return State::forged;
  }
  ++next_;
  payload = all.substr(kLength, size);
  bytes_.erase(0, end + sizeof(Mac));
  return State::message;
}

// --- client ----------------------------------------------------------------------------------------------------------

MessageClient::MessageClient(FileDescriptor socket, const Session& session)
    : MessageClient(Admitted{std::move(socket), session, {}}) {}

MessageClient::MessageClient(Admitted admitted)
    : socket_(std::move(admitted.socket)),
      writer_(admitted.session.send),
      reader_(admitted.session.receive, std::move(admitted.received)) {}

bool MessageClient::send(const Packet& packet, Deadline deadline) {
  return socket_ && !forged_ && send_all(socket_.get(), writer_.framed(packet.bytes()), deadline);
}

MessageClient::Message MessageClient::receive(Deadline deadline, int wake) {
  Message message;
  if (!socket_ || forged_) return message;
  while (true) {
    switch (reader_.take(message.payload)) {
      case FrameReader::State::message:
        message.state = Received::bytes;
        return message;
      case FrameReader::State::forged:
        forged_ = true;
        return message;
      case FrameReader::State::incomplete:
        break;
    }
    message.state = receive_some(socket_.get(), reader_.bytes(), deadline, wake);
    if (message.state != Received::bytes) return message;
    message.state = Received::end;
  }
}

MessageClient connect_proven(const std::function<Connected(Deadline)>& connect, const Key& key, Deadline deadline,
                             std::string& why) {
  while (true) {
    Connected connected = connect(deadline);
    if (connected.socket) {
      why.clear();
      if (const auto session =
              prove(connected.socket.get(), key, std::min(deadline, Clock::now() + kProofLimit), why)) {
        return {std::move(connected.socket), *session};
      }
      why = "there is " + why;
    } else {
      why = connected.why;
    }
    if (Clock::now() + kRetry >= deadline) return {};
    std::this_thread::sleep_for(kRetry);
  }
}

// --- server ----------------------------------------------------------------------------------------------------------

struct MessageServer::Connection {
  Peer peer = 0;
  FileDescriptor socket;
  Deadline speak_until;
  FrameWriter writer;
  FrameReader reader;
  std::string out;
  bool spoke = false;    // a whole message came
  bool closing = false;  // once `out` is empty
  bool gone = false;
};

MessageServer::MessageServer(FileDescriptor listener, const Key& key, Handler& handler)
    : reception_(std::move(listener), key), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), handler_(handler) {
  if (!wake_) throw_errno(ErrorKind::comm, "make an event descriptor", errno, "eventfd");
  thread_ = std::thread([this] { serve(); });
}

MessageServer::~MessageServer() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

MessageServer::Connection* MessageServer::find(Peer peer) const {
  const auto found = std::find_if(connections_.begin(), connections_.end(),
                                  [&](const Connection& one) { return one.peer == peer && !one.gone; });
  return found == connections_.end() ? nullptr : &*found;
}

void MessageServer::send(Peer peer, const Packet& packet) {
  Connection* to = find(peer);
  if (to == nullptr || to->closing) return;
  to->out += to->writer.framed(packet.bytes());
  write_to(*to);  // what does not fit goes out when poll says so
}

void MessageServer::close(Peer peer) {
  if (Connection* which = find(peer)) which->closing = true;
}

bool MessageServer::write_to(Connection& connection) {
  while (!connection.out.empty()) {
    const ssize_t sent = ::send(connection.socket.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    connection.out.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

void MessageServer::admit() {
  for (Admitted& one : reception_.admit()) {
    Connection& made = connections_.emplace_back(Connection{.peer = next_++,
                                                            .socket = std::move(one.socket),
                                                            .speak_until = Clock::now() + kFirstWordLimit,
                                                            .writer = FrameWriter(one.session.send),
                                                            .reader = FrameReader(one.session.receive)});
    made.reader.bytes() = std::move(one.received);
    if (!made.reader.bytes().empty()) read_from(made);  // its first messages came with its proof
  }
}

void MessageServer::lose(Connection& connection) {
  if (std::exchange(connection.gone, true)) return;
  if (connection.spoke && !connection.closing) handler_.on_gone(connection.peer);
}

void MessageServer::read_from(Connection& connection) {
  const Received received = receive_some(connection.socket.get(), connection.reader.bytes(), Clock::now());
  while (!connection.closing) {
    std::string payload;
    const FrameReader::State state = connection.reader.take(payload);
    if (state == FrameReader::State::incomplete) break;
    try {
      if (state == FrameReader::State::forged) throw Error(ErrorKind::comm, "no message");
      connection.spoke = true;
      handler_.on_message(connection.peer, payload);
    } catch (const Error&) {  // a malformed message closes its sender's connection, not the server
      return lose(connection);
    }
  }
  write_to(connection);
  if (received == Received::end) lose(connection);
}

void MessageServer::serve() {
  bool stopping = false;
  Deadline stop_at{}, tick_at = Clock::now() + kTick;
  while (true) {
    std::vector<pollfd> waiting{{wake_.get(), static_cast<short>(stopping ? 0 : POLLIN), 0},
                                {reception_.descriptor(), static_cast<short>(stopping ? 0 : POLLIN), 0}};
    bool queued = false;
    for (const Connection& one : connections_) {
      queued = queued || !one.out.empty();
      waiting.push_back(
          {one.socket.get(), static_cast<short>((stopping ? 0 : POLLIN) | (one.out.empty() ? 0 : POLLOUT)), 0});
    }
    if (stopping && (!queued || Clock::now() >= stop_at)) return;
    ::poll(waiting.data(), waiting.size(), milliseconds_until(stopping ? stop_at : tick_at));
    // Existing connections are read before new ones are admitted: a client that reconnects is then not here twice.
    std::size_t index = 2;
    for (Connection& one : connections_) {
      const short events = waiting[index++].revents;
      // A peer that does not accept our bytes is gone: reading its last messages then finds the end of the connection.
      if ((events & POLLOUT) != 0 && !write_to(one)) one.out.clear();
      if (!stopping && (events & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(one);
      if (!one.spoke && Clock::now() > one.speak_until) one.gone = true;
    }
    connections_.remove_if([](const Connection& one) { return one.gone || (one.closing && one.out.empty()); });
    if (waiting[0].revents != 0) {
      stopping = true;
      stop_at = Clock::now() + kFarewell;
    }
    const bool tick = Clock::now() >= tick_at;
    if (!stopping && (tick || waiting[1].revents != 0)) admit();  // at a tick: to drop those that have timed out
    if (!stopping && tick) {
      tick_at = Clock::now() + kTick;
      handler_.on_tick();
    }
  }
}

}  // namespace syslab::comm
