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

constexpr std::string_view kGreeting("syslab\x01\n", 8);
constexpr auto kGreetingLimit = 5s;
constexpr auto kTick = 200ms;      // seldom: what measures on this machine shall not notice
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

std::string framed(std::string_view payload) { return little_endian(payload.size(), 4).append(payload); }

std::string_view greeting() { return kGreeting; }

MessageBuffer::State MessageBuffer::take(std::string& payload) {
  if (!greeted_) {
    const std::size_t known = std::min(bytes_.size(), kGreeting.size());
    if (std::string_view(bytes_).substr(0, known) != kGreeting.substr(0, known)) return State::foreign;
    if (known < kGreeting.size()) return State::incomplete;
    bytes_.erase(0, kGreeting.size());
    greeted_ = true;
  }
  if (bytes_.size() < 4) return State::incomplete;
  const auto size = static_cast<std::uint32_t>(from_little_endian(std::string_view(bytes_).substr(0, 4)));
  if (size > longest_) return State::foreign;
  if (bytes_.size() - 4 < size) return State::incomplete;
  payload = bytes_.substr(4, size);
  bytes_.erase(0, 4 + std::size_t{size});
  return State::message;
}

// --- client ----------------------------------------------------------------------------------------------------------

MessageClient::MessageClient(FileDescriptor socket) : socket_(std::move(socket)) {
  buffer_.trust();
  send_all(socket_.get(), kGreeting, Clock::now() + 1s);
}

bool MessageClient::send(const Packet& packet, Deadline deadline) {
  return socket_ && send_all(socket_.get(), framed(packet.bytes()), deadline);
}

MessageClient::Message MessageClient::receive(Deadline deadline, int wake) {
  Message message;
  if (!socket_) return message;
  while (true) {
    switch (buffer_.take(message.payload)) {
      case MessageBuffer::State::message:
        message.state = Received::bytes;
        return message;
      case MessageBuffer::State::foreign:
        foreign_ = true;
        return message;
      case MessageBuffer::State::incomplete:
        break;
    }
    message.state = receive_some(socket_.get(), buffer_.bytes(), deadline, wake);
    if (message.state == Received::end && !buffer_.greeted()) foreign_ = true;
    if (message.state != Received::bytes) return message;
    message.state = Received::end;
  }
}

// --- server ----------------------------------------------------------------------------------------------------------

struct MessageServer::Connection {
  Peer peer = 0;
  FileDescriptor socket;
  Deadline greet_until;
  MessageBuffer in;
  std::string out;
  bool spoke = false;    // a whole message came
  bool closing = false;  // once `out` is empty
  bool gone = false;
};

MessageServer::MessageServer(FileDescriptor listener, Handler& handler)
    : listener_(std::move(listener)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), handler_(handler) {
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
  to->out += framed(packet.bytes());
  write_to(*to);  // what does not fit goes out when poll says so
}

void MessageServer::close(Peer peer) {
  if (Connection* which = find(peer)) which->closing = true;
}

void MessageServer::trust(Peer peer) {
  if (Connection* which = find(peer)) which->in.trust();
}

bool MessageServer::write_to(Connection& connection) {
  while (!connection.out.empty()) {
    const ssize_t sent = ::send(connection.socket.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    connection.out.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

void MessageServer::accept_all() {
  while (true) {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Who knocks goes on knocking: without a pause poll() would return at once, again and again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) accept_at_ = Clock::now() + kTick;
      return;
    }
    Connection& made = connections_.emplace_back();
    made.peer = next_++;
    made.socket = std::move(socket);
    made.greet_until = Clock::now() + kGreetingLimit;
  }
}

void MessageServer::lose(Connection& connection) {
  if (std::exchange(connection.gone, true)) return;
  if (connection.spoke && !connection.closing) handler_.on_gone(connection.peer);
}

void MessageServer::read_from(Connection& connection) {
  const Received received = receive_some(connection.socket.get(), connection.in.bytes(), Clock::now());
  while (!connection.closing) {
    std::string payload;
    const bool greeted_before = connection.in.greeted();
    const MessageBuffer::State state = connection.in.take(payload);
    if (!greeted_before && connection.in.greeted()) connection.out.insert(0, kGreeting);
    if (state == MessageBuffer::State::incomplete) break;
    try {
      if (state == MessageBuffer::State::foreign) throw Error(ErrorKind::comm, "no message");
      connection.spoke = true;
      handler_.on_message(connection.peer, payload);
    } catch (const Error&) {  // what does not read as a message ends its sender's connection, not the server
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
    const bool accepts = !stopping && Clock::now() >= accept_at_;
    std::vector<pollfd> waiting{{wake_.get(), static_cast<short>(stopping ? 0 : POLLIN), 0},
                                {listener_.get(), static_cast<short>(accepts ? POLLIN : 0), 0}};
    bool queued = false;
    for (const Connection& one : connections_) {
      queued = queued || !one.out.empty();
      waiting.push_back(
          {one.socket.get(), static_cast<short>((stopping ? 0 : POLLIN) | (one.out.empty() ? 0 : POLLOUT)), 0});
    }
    if (stopping && (!queued || Clock::now() >= stop_at)) return;
    ::poll(waiting.data(), waiting.size(), milliseconds_until(stopping ? stop_at : tick_at));
    // Those that are there are heard before new ones are let in: who closed and came again is not here twice.
    std::size_t index = 2;
    for (Connection& one : connections_) {
      const short events = waiting[index++].revents;
      // Who does not take what we write is gone: that is read, behind its last words.
      if ((events & POLLOUT) != 0 && !write_to(one)) one.out.clear();
      if (!stopping && (events & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(one);
      if (!one.spoke && Clock::now() > one.greet_until) one.gone = true;
    }
    connections_.remove_if([](const Connection& one) { return one.gone || (one.closing && one.out.empty()); });
    if (waiting[0].revents != 0) {
      stopping = true;
      stop_at = Clock::now() + kFarewell;
    } else if (waiting[1].revents != 0) {
      accept_all();
    }
    if (!stopping && Clock::now() >= tick_at) {
      tick_at = Clock::now() + kTick;
      handler_.on_tick();
    }
  }
}

}  // namespace syslab::comm
