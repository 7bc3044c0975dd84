#include "agents/lab.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>

#include "comm/rendezvous/agree.hpp"
#include "comm/rendezvous/process_name.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"
#include "core/process/environment_variable.hpp"
#include "core/text/units.hpp"
#include "runner/request.hpp"

namespace syslab::agents {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 250ms;
constexpr auto kOpening = 1s;  // from its proof to its first message

// A port for a case's ranks, below the ephemeral ports; if it is taken, the ranks try the following ones.
int random_port() { return 18'000 + static_cast<int>(std::random_device()() % 14'000); }

std::optional<Opening> receive_opening(comm::MessageClient& client) {
  keep_alive(client.descriptor());
  const comm::MessageClient::Message message = client.receive(Clock::now() + kOpening);
  return message.state == comm::Received::bytes ? read_opening(message.payload) : std::nullopt;
}

}  // namespace

comm::LaunchEnvironment take_launch(LaunchOrders& orders) {
  comm::LaunchEnvironment launch = comm::launch_environment(comm::process_variables());
  if (launch.size == 1) return launch;
  for (const char* name :
       {"SYSLAB_RANK", "SYSLAB_WORLD_SIZE", "SYSLAB_LOCAL_RANK", "SYSLAB_LOCAL_WORLD_SIZE", "SYSLAB_RENDEZVOUS"}) {
    ::unsetenv(name);
  }
  if (launch.rendezvous.empty()) {
    throw Error(
        ErrorKind::usage,
        fmt::format("this is rank {} of {} that {} started, and nothing says where they meet: set SYSLAB_RENDEZVOUS on "
                    "all of them to tcp://HOST:PORT/TOKEN with rank 0's host, or to file:DIRECTORY, which all see",
                    launch.rank, launch.size, launch.source));
  }
  if (const std::string limit = environment_variable("SYSLAB_LAUNCH_LIMIT"); !limit.empty()) {
    const std::optional<Nanoseconds> duration = parse_duration(limit);
    if (!duration || duration->count() <= 0) {
      throw Error(ErrorKind::usage, fmt::format("SYSLAB_LAUNCH_LIMIT '{}' is no duration; write 30s or 5m", limit));
    }
    orders.limit = std::chrono::ceil<std::chrono::milliseconds>(*duration);
  }
  return launch;
}

Lab::Lab(const comm::LaunchEnvironment& launch, const LaunchOrders& orders)
    : lines_(static_cast<std::size_t>(launch.size)) {
  seats_.resize(static_cast<std::size_t>(launch.size));
  seats_.front() = this_seat(launch.local_rank);
  meet(launch, orders);
}

void Lab::meet(const comm::LaunchEnvironment& launch, const LaunchOrders& orders) {
  const Deadline deadline = Clock::now() + orders.limit;
  const auto rendezvous =
      comm::open_rendezvous({.address = launch.rendezvous, .rank = 0, .size = launch.size, .limit = orders.limit});
  comm::agree(*rendezvous, "launch", {{"command line", fmt::format("{}", fmt::join(orders.arguments, " "))}},
              orders.limit);
  const std::vector<std::string> places = rendezvous->gather("lab/place", place_of(seats_.front()), orders.limit);
  const bool all_here = std::ranges::all_of(places, [&](const auto& place) { return place == places.front(); });
  const std::string named = environment_variable("SYSLAB_HOST");
  address_ = !named.empty() ? named : rendezvous->host().empty() ? seats_.front().host : rendezvous->host();
  const std::string at = all_here ? "127.0.0.1" : address_;
  FileDescriptor listener = comm::listen_tcp(at, 0);
  if (!listener) throw_errno(ErrorKind::comm, "listen for the agents of this launch", errno, "bind");
  const int port = comm::port_of(listener);
  const std::string name = new_uuid7();
  reception_.emplace(std::move(listener), agents_key(*rendezvous, name));
  rendezvous->set("lab", (comm::Packet() << at << static_cast<std::uint64_t>(port) << name).bytes());
  await_agents(*rendezvous, deadline);
}

void Lab::await_agents(comm::Rendezvous& rendezvous, Deadline deadline) {
  while (true) {
    std::vector<int> missing;
    for (int rank = 1; rank < ranks(); ++rank) {
      if (lines_[static_cast<std::size_t>(rank)] == nullptr) missing.push_back(rank);
    }
    if (missing.empty()) return;
    pollfd waiting{reception_->descriptor(), POLLIN, 0};
    if (::poll(&waiting, 1, comm::milliseconds_until(std::min(deadline, Clock::now() + kLook))) == 0) {
      static_cast<void>(rendezvous.find("lab", 0ms));  // which throws where one has failed meanwhile
    }
    for (comm::Admitted& one : reception_->admit()) {
      comm::MessageClient client(std::move(one));
      const std::optional<Opening> opening = receive_opening(client);
      const bool known = opening && opening->seat && opening->rank > 0 && opening->rank < ranks() &&
                         lines_[static_cast<std::size_t>(opening->rank)] == nullptr;
      if (!known) continue;
      const auto rank = static_cast<std::size_t>(opening->rank);
      seats_[rank] = *opening->seat;
      lines_[rank] = std::make_shared<Line>(std::move(client), opening->rank, *opening->seat);
    }
    if (Clock::now() < deadline) continue;
    throw Error(ErrorKind::comm,
                fmt::format("rank{} {} met rank 0, but did not reach it at {} port {}: is that port open between the "
                            "hosts? SYSLAB_HOST on rank 0 names its host as the others reach it",
                            missing.size() == 1 ? "" : "s", comm::rank_list(missing), address_,
                            comm::port_of(reception_->listener())));
  }
}

Lab::~Lab() {
  for (const auto& line : lines_) {
    if (line != nullptr) line->send(comm::Packet() << order::bye);
  }
  const Deadline deadline = Clock::now() + patience();
  for (const auto& line : lines_) {
    if (line != nullptr) line->listen_to_the_end(deadline);
  }
}

std::string Lab::rendezvous(int of) const {
  if (on_one_host(seats_, of)) return {};
  const bool bare_ipv6 = address_.find(':') != std::string::npos;
  return fmt::format("tcp://{}{}{}:{}/{}", bare_ipv6 ? "[" : "", address_, bare_ipv6 ? "]" : "", random_port(),
                     new_uuid7());
}

std::unique_ptr<runner::Hosted> Lab::start(int rank, const SpawnOptions& options) {
  if (rank == 0) return runner::start_here(options);
  const std::shared_ptr<Line>& line = lines_.at(static_cast<std::size_t>(rank));
  line->listen(Clock::now());
  const auto expect_there = [&] {
    if (!line->lost().empty()) throw Error(ErrorKind::comm, line->lost(), runner::kNoPlace);
  };
  expect_there();
  if (options.argv != runner::own_worker_command()) {
    throw Error(
        ErrorKind::comm,
        fmt::format("{} starts workers of its own program and no other, and '{}' was asked for: measure another "
                    "build beside this one without a launcher",
                    line->who(), options.argv.front()),
        runner::kNoPlace);
  }
  const StartOrder order{++workers_, options.environment};
  static_cast<void>(reception_->admit());  // other connections made meanwhile, which would be served before the agent
  line->send(to_packet(order));
  comm::MessageClient connection = accept_worker(*line, rank, order.worker);
  expect_there();
  return std::make_unique<RemoteWorker>(line, order.worker, std::move(connection));
}

comm::MessageClient Lab::accept_worker(Line& line, int rank, WorkerId worker) {
  comm::MessageClient connection;
  const Deadline began = Clock::now();
  bool started = false;
  while (!started || !connection) {
    const Deadline deadline = began + patience();
    line.listen(std::min(deadline, Clock::now() + kLook), reception_->descriptor());
    if (!line.lost().empty()) return connection;
    if (const auto why_not = line.take_start(worker)) {
      if (!why_not->empty()) {
        throw Error(ErrorKind::internal, fmt::format("{}: {}", line.who(), *why_not), runner::kNoPlace);
      }
      started = true;
    }
    for (comm::Admitted& one : reception_->admit()) {
      comm::MessageClient client(std::move(one));
      const std::optional<Opening> opening = receive_opening(client);
      if (opening && !opening->seat && opening->rank == rank && opening->worker == worker) {
        connection = std::move(client);
      }
    }
    if (Clock::now() < deadline || (started && connection)) continue;
    line.give_up("was ordered a worker and starts none");
    return connection;
  }
  return connection;
}

}  // namespace syslab::agents
