#include "agents/agent.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/rendezvous/agree.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "core/error.hpp"
#include "core/files/temporary_folder.hpp"
#include "core/process/process_stat.hpp"
#include "runner/interruption.hpp"
#include "runner/request.hpp"

namespace syslab::agents {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 250ms;  // between looks at whether a worker is stopped, or has ended where no descriptor tells

// Where the lab listens, and what proves that this is an agent of its launch.
struct LabAddress {
  std::string host;
  int port = 0;
  Key key{};
};

LabAddress find_lab(const LaunchOrders& orders, const Seat& seat, comm::Rendezvous& rendezvous) {
  comm::agree(rendezvous, "launch", {{"command line", fmt::format("{}", fmt::join(orders.arguments, " "))}},
              orders.limit);
  rendezvous.gather("lab/place", place_of(seat), orders.limit);  // by which the lab chooses where it listens
  const std::string where = rendezvous.get("lab", orders.limit);
  comm::PacketReader packet{std::string_view(where)};
  LabAddress lab;
  lab.host = packet.text();
  lab.port = static_cast<int>(packet.number());
  lab.key = agents_key(rendezvous, packet.text());
  return lab;
}

class Agent {
 public:
  Agent(const comm::LaunchEnvironment& launch, const LaunchOrders& orders)
      : rank_(launch.rank), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_) throw_errno(ErrorKind::internal, "watch processes", errno, "epoll_create1");
    const Seat seat = this_seat(launch.local_rank);
    const auto rendezvous = comm::open_rendezvous(
        {.address = launch.rendezvous, .rank = launch.rank, .size = launch.size, .limit = orders.limit});
    lab_ = find_lab(orders, seat, *rendezvous);
    line_ = connect(to_packet(Opening{.rank = rank_, .seat = seat}), Clock::now() + orders.limit);
    interruption_.emplace();  // until here a signal ends us like any other program
    wake_on(interruption_->fd());
  }

  int serve() {
    Deadline end_by = Deadline::max();
    while (true) {
      tell_ends();
      tell_stops();
      tell_alive();
      if (interruption_->signal() != 0 && end_by == Deadline::max()) {
        end_by = Clock::now() + kAnswer;
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, interruption_->fd(), nullptr);
      }
      if (Clock::now() >= end_by) return 128 + interruption_->signal();
      relays_.remove_if([](const auto& relay) { return relay->done(); });
      const auto tick = workers_.empty() && relays_.empty() ? Clock::now() + 1h : Clock::now() + kTick;
      const comm::MessageClient::Message message = line_.receive(std::min(tick, end_by), epoll_.get());
      if (message.state == comm::Received::nothing) continue;
      if (message.state == comm::Received::end) {
        throw Error(ErrorKind::comm, fmt::format("rank {}: the lab, rank 0 on {}, is gone; what ran here for it was "
                                                 "ended",
                                                 rank_, lab_.host));
      }
      comm::PacketReader packet(message.payload);
      const std::uint64_t what = packet.number();
      if (what == order::bye) return 0;
      if (what == order::start) start(packet);
      if (what == order::signal) signal(packet);
      heard_ = Clock::now();
    }
  }

 private:
  struct Worker {
    Process process;
    FileDescriptor end;  // readable once the process has ended; none if the system has no such descriptor
    std::unique_ptr<Relay> relay;
    bool stopped = false;  // as the lab was told
  };

  comm::MessageClient connect(const comm::Packet& opening, Deadline deadline) const {
    std::string why;
    comm::MessageClient made = comm::connect_proven(
        [&](Deadline until) { return comm::connect_tcp(lab_.host, lab_.port, until); }, lab_.key, deadline, why);
    if (!made || !made.send(opening, Clock::now() + kAnswer)) {
      throw Error(ErrorKind::comm,
                  fmt::format("rank {} cannot reach rank 0 at {} port {}: {}; SYSLAB_HOST on rank 0 names its host as "
                              "the others reach it",
                              rank_, lab_.host, lab_.port, why.empty() ? "it hangs up" : why));
    }
    keep_alive(made.descriptor());
    return made;
  }

  void wake_on(int descriptor) const {
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
  }

  // Our end of a worker's pipe, for its relay.
  static Relay::Stream stream(std::uint64_t number, int pipe, Relay::Way way) {
    FileDescriptor end(::fcntl(pipe, F_DUPFD_CLOEXEC, 0));
    if (!end) throw_errno(ErrorKind::internal, "open a worker's stream", errno, "fcntl");
    ::fcntl(end.get(), F_SETFL, ::fcntl(end.get(), F_GETFL) | O_NONBLOCK);
    return {number, std::move(end), way};
  }

  // This program's own worker, whatever the order says.
  void start(comm::PacketReader& packet) {
    WorkerId worker = 0;
    try {
      const StartOrder order = read_start(packet, worker);
      comm::MessageClient connection =
          connect(to_packet(Opening{.rank = rank_, .worker = worker}), Clock::now() + kAnswer);
      SpawnOptions options;
      options.argv = runner::own_worker_command();
      options.environment = order.environment;
      Worker made{Process::spawn(options), {}, {}};
      std::vector<Relay::Stream> streams;
      streams.push_back(stream(0, made.process.to_child(), Relay::Way::from_peer));
      streams.push_back(stream(1, made.process.from_child(), Relay::Way::to_peer));
      streams.push_back(stream(2, made.process.error_output(), Relay::Way::to_peer));
      made.process.close_input();
      made.relay = std::make_unique<Relay>(std::move(connection), std::move(streams));
      made.end.reset(static_cast<int>(::syscall(SYS_pidfd_open, made.process.pid(), 0)));
      if (made.end) wake_on(made.end.get());
      workers_.emplace(worker, std::move(made));
      tell(comm::Packet() << order::started << worker);
    } catch (const Error& error) {
      tell(comm::Packet() << order::refused << worker << error.what());
    }
  }

  void signal(comm::PacketReader& packet) {
    const auto found = workers_.find(packet.number());
    if (found != workers_.end()) found->second.process.kill_group(static_cast<int>(packet.number()));
  }

  void tell_ends() {
    for (auto at = workers_.begin(); at != workers_.end();) {
      const std::optional<ExitStatus> exit = at->second.process.poll();
      if (!exit) {
        ++at;
        continue;
      }
      if (exit->signalled) remove_left_folders();
      tell(to_packet(EndedWorker{at->first, *exit}));
      relays_.push_back(std::move(at->second.relay));  // its last output may still be on its way
      at = workers_.erase(at);
    }
  }

  // The lab counts for how long: a line that is slow, or an agent that is starved, makes that shorter and never longer.
  void tell_stops() {
    for (auto& [number, worker] : workers_) {
      if (is_stopped(worker.process.pid()) == worker.stopped) continue;
      worker.stopped = !worker.stopped;
      tell(comm::Packet() << order::stopped << number << static_cast<std::uint64_t>(worker.stopped));
    }
  }

  // Only while workers run does the lab look all the time.
  void tell_alive() {
    const Deadline now = Clock::now();
    if (workers_.empty() || now - told_alive_ > kLabSilence / 2) heard_ = now;  // nobody answered, or we were away
    if (now - heard_ > kLabSilence) {
      throw Error(ErrorKind::comm, fmt::format("rank {}: the lab, rank 0 on {}, has not been heard for {} s: it is "
                                               "stopped, or its host is gone; what ran here for it was ended",
                                               rank_, lab_.host, kLabSilence.count()));
    }
    if (now - told_alive_ < kTick) return;
    told_alive_ = now;
    if (!workers_.empty()) tell(comm::Packet() << order::alive);
  }

  // The code that listens to the lab notices when it is gone.
  void tell(const comm::Packet& packet) { line_.send(packet, Clock::now() + kAnswer); }

  const int rank_;
  FileDescriptor epoll_;
  LabAddress lab_;
  comm::MessageClient line_;
  std::optional<runner::Interruption> interruption_;
  std::map<WorkerId, Worker> workers_;
  Deadline told_alive_{}, heard_{};
  std::list<std::unique_ptr<Relay>> relays_;  // of workers that have ended
};

}  // namespace

int serve_agent(const comm::LaunchEnvironment& launch, const LaunchOrders& orders) {
  return Agent(launch, orders).serve();
}

}  // namespace syslab::agents
