#include "agents/relay.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/error.hpp"

namespace syslab::agents {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kChunk = 64U << 10;
constexpr auto kSendLimit = 30s;  // of a connection that accepts no data: its other end is stopped, or its host is gone

}  // namespace

Relay::Relay(comm::MessageClient connection, std::vector<Stream> streams)
    : connection_(std::move(connection)),
      streams_(std::move(streams)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw_errno(ErrorKind::internal, "make an event descriptor", errno, "eventfd");
  // Signals go to the main thread, and a worker that stops reading must not kill us by SIGPIPE.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Relay::~Relay() {
  stopping_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  ::shutdown(connection_.descriptor(), SHUT_RDWR);  // a sender need not wait for a receiver that accepts nothing
  thread_.join();
}

bool Relay::sends() const {
  return std::ranges::any_of(streams_, [](const Stream& it) { return it.way == Way::to_peer && it.end; });
}

bool Relay::carry_to_peer(Stream& stream) {
  std::array<char, kChunk> chunk;
  const ssize_t got = ::read(stream.end.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) stream.end.reset();
  const std::string_view bytes(chunk.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return connection_.send(comm::Packet() << stream.number << bytes, comm::Clock::now() + kSendLimit);
}

void Relay::write(Stream& stream, std::string_view bytes) const {
  while (!bytes.empty() && stream.end && !stopping_) {
    const ssize_t written = ::write(stream.end.get(), bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return stream.end.reset();  // no longer read
    std::array<pollfd, 2> waiting{{{stream.end.get(), POLLOUT, 0}, {stop_.get(), POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), -1);
  }
}

bool Relay::carry_from_peer() {
  while (!stopping_) {
    const comm::MessageClient::Message message = connection_.receive(comm::Clock::now());
    if (message.state != comm::Received::bytes) return message.state == comm::Received::nothing;
    comm::PacketReader packet{std::string_view(message.payload)};
    const std::uint64_t number = packet.number();
    const std::string bytes = packet.text();
    for (Stream& stream : streams_) {
      if (stream.number != number || stream.way != Way::from_peer) continue;
      if (bytes.empty()) {
        stream.end.reset();
      } else {
        write(stream, bytes);
      }
    }
  }
  return false;
}

void Relay::run() {
  bool there = true;
  try {
    while (there && !stopping_) {
      done_ = !sends();
      std::vector<pollfd> waiting{{stop_.get(), POLLIN, 0}, {connection_.descriptor(), POLLIN, 0}};
      for (const Stream& stream : streams_) {
        // poll() ignores a negative descriptor.
        waiting.push_back({stream.way == Way::to_peer ? stream.end.get() : -1, POLLIN, 0});
      }
      ::poll(waiting.data(), waiting.size(), -1);
      if (waiting[1].revents != 0) there = carry_from_peer();
      for (std::size_t i = 0; there && i < streams_.size(); ++i) {
        if (waiting[i + 2].revents != 0) there = carry_to_peer(streams_[i]);
      }
    }
  } catch (const Error&) {  // an authenticated but invalid message: from another version
  }
  // The reader or writer here sees that the other side is gone.
  for (Stream& stream : streams_) stream.end.reset();
  ::shutdown(connection_.descriptor(), SHUT_RDWR);
  done_ = true;
}

}  // namespace syslab::agents
