#include "comm/rendezvous/common_start.hpp"

#include <algorithm>
#include <string_view>

#include "comm/rendezvous/messages.hpp"
#include "comm/rendezvous/process_name.hpp"

namespace syslab::comm {
namespace {

constexpr std::chrono::microseconds kRead{500};  // for the texts of eight ranks, from a slow file system

}  // namespace

std::string arrival_text() {
  Packet packet;
  packet << this_process().system << static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  return packet.bytes();
}

std::optional<Clock::time_point> common_start(const std::vector<std::string>& arrivals) {
  std::string system;
  std::uint64_t last = 0;
  for (const std::string& arrival : arrivals) {
    PacketReader reader(arrival);
    std::string one = reader.text();
    if (!system.empty() && one != system) return std::nullopt;
    system = std::move(one);
    last = std::max(last, reader.number());
  }
  return Clock::time_point(Clock::duration(static_cast<Clock::rep>(last))) + kRead;
}

void wait_for_start(Clock::time_point start) {
  if (start - Clock::now() > 2 * kRead) return;
  while (Clock::now() < start) {
  }
}

}  // namespace syslab::comm
