#include "agents/orders.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "core/error.hpp"

namespace syslab::agents {
namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kLongestOpening = 64U << 10;

// Exactly so many bytes, and none of those behind them; empty when they do not come.
std::string receive_exactly(int socket, std::size_t count, Deadline deadline) {
  std::string bytes(count, '\0');
  for (std::size_t have = 0; have < count;) {
    const ssize_t got = ::recv(socket, bytes.data() + have, count - have, 0);
    if (got > 0) {
      have += static_cast<std::size_t>(got);
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) return {};
    pollfd waiting{socket, POLLIN, 0};
    if (::poll(&waiting, 1, comm::milliseconds_until(deadline)) == 0) return {};
  }
  return bytes;
}

std::uint64_t microseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec);
}

timeval from_microseconds(std::uint64_t count) {
  return {static_cast<time_t>(count / 1'000'000), static_cast<suseconds_t>(count % 1'000'000)};
}

}  // namespace

void send_opening(int socket, const Opening& opening, Deadline deadline) {
  comm::Packet packet;
  packet << kVersion << opening.secret << static_cast<std::uint64_t>(opening.rank)
         << static_cast<std::uint64_t>(opening.seat.has_value());
  if (opening.seat) {
    packet << *opening.seat;
  } else {
    packet << opening.worker << static_cast<std::uint64_t>(opening.stream);
  }
  // A packet of one number before it: how long it is.
  const std::string length = (comm::Packet() << static_cast<std::uint64_t>(packet.bytes().size())).bytes();
  if (!comm::send_all(socket, length + packet.bytes(), deadline)) {
    throw Error(ErrorKind::comm, "the lab hangs up on this agent: is it of the same launch?");
  }
}

std::optional<Opening> receive_opening(int socket, Deadline deadline) {
  const std::string head = receive_exactly(socket, sizeof(std::uint64_t), deadline);
  if (head.empty()) return std::nullopt;
  const std::uint64_t length = comm::PacketReader(std::string_view(head)).number();
  if (length == 0 || length > kLongestOpening) return std::nullopt;
  const std::string body = receive_exactly(socket, length, deadline);
  try {
    comm::PacketReader packet{std::string_view(body)};
    if (packet.number() != kVersion) return std::nullopt;
    Opening opening;
    opening.secret = packet.text();
    opening.rank = static_cast<int>(packet.number());
    if (packet.number() != 0) {
      opening.seat = read_seat(packet);
    } else {
      opening.worker = packet.number();
      opening.stream = static_cast<int>(packet.number());
    }
    return opening;
  } catch (const Error&) {  // a stranger's bytes
    return std::nullopt;
  }
}

comm::Packet to_packet(const StartOrder& order) {
  comm::Packet packet;
  packet << order::start << order.worker << static_cast<std::uint64_t>(order.argv.size());
  for (const std::string& word : order.argv) packet << word;
  packet << static_cast<std::uint64_t>(order.environment.size());
  for (const auto& [name, value] : order.environment) packet << name << value;
  return packet;
}

StartOrder read_start(comm::PacketReader& packet) {
  StartOrder order;
  order.worker = packet.number();
  const std::uint64_t words = packet.number();
  for (std::uint64_t i = 0; i < words; ++i) order.argv.push_back(packet.text());
  const std::uint64_t variables = packet.number();
  for (std::uint64_t i = 0; i < variables; ++i) {
    std::string name = packet.text();
    order.environment[std::move(name)] = packet.text();
  }
  return order;
}

comm::Packet to_packet(const EndedWorker& ended) {
  comm::Packet packet;
  packet << order::ended << ended.worker << static_cast<std::uint64_t>(ended.exit.signalled)
         << static_cast<std::uint64_t>(ended.exit.code) << static_cast<std::uint64_t>(ended.exit.usage.ru_maxrss)
         << microseconds(ended.exit.usage.ru_utime) << microseconds(ended.exit.usage.ru_stime);
  return packet;
}

EndedWorker read_ended(comm::PacketReader& packet) {
  EndedWorker ended;
  ended.worker = packet.number();
  ended.exit.signalled = packet.number() != 0;
  ended.exit.code = static_cast<int>(packet.number());
  ended.exit.usage.ru_maxrss = static_cast<long>(packet.number());
  ended.exit.usage.ru_utime = from_microseconds(packet.number());
  ended.exit.usage.ru_stime = from_microseconds(packet.number());
  return ended;
}

void keep_alive(int socket) {
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);  // milliseconds, of what was sent and not acknowledged
}

}  // namespace syslab::agents
