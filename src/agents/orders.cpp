#include "agents/orders.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.hpp"

namespace syslab::agents {
namespace {

constexpr std::uint64_t kVersion = 2;
constexpr std::array<std::string_view, 2> kForWorkers{"OMP_NUM_THREADS", "OMP_WAIT_POLICY"};

std::uint64_t microseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec);
}

timeval from_microseconds(std::uint64_t count) {
  return {static_cast<time_t>(count / 1'000'000), static_cast<suseconds_t>(count % 1'000'000)};
}

}  // namespace

comm::Packet to_packet(const Opening& opening) {
  comm::Packet packet;
  packet << kVersion << static_cast<std::uint64_t>(opening.rank)
         << static_cast<std::uint64_t>(opening.seat.has_value());
  if (opening.seat) {
    packet << *opening.seat;
  } else {
    packet << opening.worker;
  }
  return packet;
}

std::optional<Opening> read_opening(std::string_view payload) {
  try {
    comm::PacketReader packet{payload};
    if (packet.number() != kVersion) return std::nullopt;
    Opening opening;
    opening.rank = static_cast<int>(packet.number());
    if (packet.number() != 0) {
      opening.seat = read_seat(packet);
    } else {
      opening.worker = packet.number();
    }
    return opening;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_for_workers(std::string_view variable) { return std::ranges::find(kForWorkers, variable) != kForWorkers.end(); }

comm::Packet to_packet(const StartOrder& order) {
  comm::Packet packet;
  packet << order::start << order.worker << static_cast<std::uint64_t>(order.environment.size());
  for (const auto& [name, value] : order.environment) packet << name << value;
  return packet;
}

StartOrder read_start(comm::PacketReader& packet, WorkerId& worker) {
  StartOrder order;
  worker = order.worker = packet.number();
  const std::uint64_t variables = packet.number();
  for (std::uint64_t i = 0; i < variables; ++i) {
    std::string name = packet.text();
    if (!is_for_workers(name)) {
      throw Error(ErrorKind::comm, fmt::format("an order names the variable '{}', which no lab gives a worker", name));
    }
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

Key agents_key(const comm::Rendezvous& rendezvous, std::string_view launch) {
  return derived(rendezvous.key(), fmt::format("agents {}", launch));
}

std::string place_of(const Seat& seat) { return seat.system + ' ' + seat.host; }

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
