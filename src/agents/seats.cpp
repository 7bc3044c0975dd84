#include "agents/seats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "comm/rendezvous/process_name.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "core/process/environment_variable.hpp"
#include "core/text/text.hpp"
#include "runner/nvml.hpp"

namespace syslab::agents {
namespace {

// "0-3,8", of the processors that this process may run on.
void note_processors(Seat& seat) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) {  // more of them than fit
    seat.processor_count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    return;
  }
  seat.processor_count = std::max(1, CPU_COUNT(&allowed));
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &allowed)) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &allowed)) ++last;
    if (!seat.processors.empty()) seat.processors += ',';
    seat.processors += last == first ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    first = last;
  }
}

std::vector<std::string> visible_gpus() {
  std::vector<std::string> gpus;
  const Json facts = runner::nvml_facts();
  const std::size_t count = facts.value("gpu", Json::array()).size();
  if (count == 0) return gpus;
  if (const std::string visible = environment_variable("CUDA_VISIBLE_DEVICES"); !visible.empty())
    return split(visible, ',');
  for (std::size_t gpu = 0; gpu < count; ++gpu) gpus.push_back(std::to_string(gpu));
  return gpus;
}

// Processes that share one set of processors or GPUs.
bool share_processors(const Seat& one, const Seat& other) {
  return one.system == other.system && one.host == other.host && one.processors == other.processors;
}

}  // namespace

Seat this_seat(int local_rank) {
  Seat seat;
  const comm::ProcessName self = comm::this_process();
  const std::string named = environment_variable("SYSLAB_HOST");
  seat.host = named.empty() ? self.host : named;
  seat.system = self.system;
  note_processors(seat);
  seat.threads_are_set = !environment_variable("OMP_NUM_THREADS").empty();
  seat.gpus = visible_gpus();
  seat.local_rank = local_rank;
  return seat;
}

comm::Packet& operator<<(comm::Packet& packet, const Seat& seat) {
  packet << seat.host << seat.system << seat.processors << static_cast<std::uint64_t>(seat.processor_count)
         << static_cast<std::uint64_t>(seat.threads_are_set) << static_cast<std::uint64_t>(seat.local_rank)
         << static_cast<std::uint64_t>(seat.gpus.size());
  for (const std::string& gpu : seat.gpus) packet << gpu;
  return packet;
}

Seat read_seat(comm::PacketReader& packet) {
  Seat seat;
  seat.host = packet.text();
  seat.system = packet.text();
  seat.processors = packet.text();
  seat.processor_count = std::max(1, static_cast<int>(packet.number()));
  seat.threads_are_set = packet.number() != 0;
  seat.local_rank = static_cast<int>(packet.number());
  const std::uint64_t gpus = packet.number();
  for (std::uint64_t gpu = 0; gpu < gpus; ++gpu) seat.gpus.push_back(packet.text());
  return seat;
}

bool on_one_host(std::span<const Seat> seats, int ranks) {
  return std::ranges::all_of(seats.first(static_cast<std::size_t>(ranks)), [&](const Seat& seat) {
    return seat.system == seats.front().system && seat.host == seats.front().host;
  });
}

int threads_of(std::span<const Seat> seats, int rank, int ranks) {
  const Seat& own = seats[static_cast<std::size_t>(rank)];
  if (own.threads_are_set) return 0;
  const auto sharing = std::ranges::count_if(seats.first(static_cast<std::size_t>(ranks)),
                                             [&](const Seat& other) { return share_processors(own, other); });
  return std::max(1, own.processor_count / static_cast<int>(sharing));
}

int gpu_of(const Seat& seat) { return seat.gpus.empty() ? 0 : seat.local_rank % static_cast<int>(seat.gpus.size()); }

int ranks_with_a_gpu(std::span<const Seat> seats) {
  std::set<std::pair<std::string, std::string>> taken;
  int ranks = 0;
  for (const Seat& seat : seats) {
    if (seat.gpus.empty()) break;
    if (!taken.insert({seat.host, seat.gpus[static_cast<std::size_t>(gpu_of(seat))]}).second) break;
    ++ranks;
  }
  return ranks;
}

std::string text_of(std::span<const Seat> seats) {
  std::vector<std::pair<std::string, std::vector<int>>> hosts;  // in the order of their first ranks
  for (std::size_t rank = 0; rank < seats.size(); ++rank) {
    const std::string& host = seats[rank].host;
    auto at = std::ranges::find(hosts, host, [](const auto& one) { return one.first; });
    if (at == hosts.end()) at = hosts.insert(hosts.end(), {host, {}});
    at->second.push_back(static_cast<int>(rank));
  }
  std::string text = fmt::format("{} ranks on ", seats.size());
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i > 0) text += i + 1 == hosts.size() ? " and " : ", ";
    text += fmt::format("{} ({})", hosts[i].first, comm::rank_list(hosts[i].second));
  }
  return text;
}

}  // namespace syslab::agents
