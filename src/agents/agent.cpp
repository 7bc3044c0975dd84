#include "agents/agent.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "comm/rendezvous/agree.hpp"
#include "comm/rendezvous/rendezvous.hpp"
#include "core/error.hpp"
#include "runner/interruption.hpp"
#include "runner/request.hpp"

namespace syslab::agents {
namespace {

using namespace std::chrono_literals;

constexpr auto kTick = 250ms;  // where the system tells of no process's end by a descriptor

// Where the lab listens, and the word that proves whose agent this is.
struct LabAddress {
  std::string host;
  int port = 0;
  std::string secret;
};

LabAddress find_lab(const comm::LaunchEnvironment& launch, const LaunchOrders& orders, const Seat& seat,
                    comm::Store& store) {
  comm::agree(store, "launch", {{"command line", fmt::format("{}", fmt::join(orders.arguments, " "))}}, orders.limit);
  const std::string where = store.get("lab", orders.limit);
  comm::PacketReader packet{std::string_view(where)};
  LabAddress lab;
  lab.host = packet.text();
  // Of one host the loopback will do, whatever its name leads to.
  const bool beside = packet.text() == seat.system && launch.host.empty();
  if (beside) lab.host = "127.0.0.1";
  lab.port = static_cast<int>(packet.number());
  lab.secret = packet.text();
  return lab;
}

class Agent {
 public:
  Agent(const comm::LaunchEnvironment& launch, const LaunchOrders& orders)
      : rank_(launch.rank), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_) throw_errno(ErrorKind::internal, "watch processes", errno, "epoll_create1");
    const Seat seat = this_seat(launch.local_rank);
    const auto store = comm::open_store(
        {.rendezvous = launch.rendezvous, .rank = launch.rank, .size = launch.size, .limit = orders.limit});
    lab_ = find_lab(launch, orders, seat, *store);
    FileDescriptor socket = connect(Clock::now() + orders.limit);
    send_opening(socket.get(), {.secret = lab_.secret, .rank = rank_, .seat = seat}, Clock::now() + kAnswer);
    line_ = comm::MessageClient(std::move(socket));
    interruption_.emplace();  // until here a signal ends us as it ends any program
    wake_on(interruption_->fd());
  }

  int serve() {
    Deadline end_by = Deadline::max();
    while (true) {
      tell_ends();
      if (interruption_->signal() != 0 && end_by == Deadline::max()) {
        end_by = Clock::now() + kAnswer;
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, interruption_->fd(), nullptr);
      }
      if (Clock::now() >= end_by) return 128 + interruption_->signal();
      const auto tick = workers_.empty() ? Clock::now() + 1h : Clock::now() + kTick;
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
      if (what == order::start) start(read_start(packet));
      if (what == order::signal) signal(packet);
    }
  }

 private:
  struct Worker {
    Process process;
    FileDescriptor end;  // readable once it has ended; none where the system has no such descriptor
  };

  FileDescriptor connect(Deadline deadline) const {
    comm::Connected connected = comm::connect_tcp(lab_.host, lab_.port, deadline);
    if (!connected.socket) {
      throw Error(ErrorKind::comm,
                  fmt::format("rank {} cannot reach rank 0 at {} port {}: {}; SYSLAB_HOST on rank 0 names its host as "
                              "the others reach it",
                              rank_, lab_.host, lab_.port, connected.why));
    }
    keep_alive(connected.socket.get());
    return std::move(connected.socket);
  }

  void wake_on(int descriptor) const {
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
  }

  // A descriptor above the standard streams that blocks, as a program expects of those.
  FileDescriptor open_stream(WorkerId worker, int stream) const {
    const FileDescriptor socket = connect(Clock::now() + kAnswer);
    send_opening(socket.get(), {.secret = lab_.secret, .rank = rank_, .worker = worker, .stream = stream},
                 Clock::now() + kAnswer);
    FileDescriptor above(::fcntl(socket.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!above) throw_errno(ErrorKind::internal, "open a worker's stream", errno, "fcntl");
    ::fcntl(above.get(), F_SETFL, ::fcntl(above.get(), F_GETFL) & ~O_NONBLOCK);
    return above;
  }

  void start(StartOrder order) {
    try {
      if (order.argv.front().empty()) order.argv.front() = runner::own_worker_command().front();
      const std::array<FileDescriptor, 3> streams{open_stream(order.worker, 0), open_stream(order.worker, 1),
                                                  open_stream(order.worker, 2)};
      SpawnOptions options;
      options.argv = std::move(order.argv);
      options.environment = std::move(order.environment);
      options.streams = {streams[0].get(), streams[1].get(), streams[2].get()};
      Worker made{Process::spawn(options), {}};
      made.end.reset(static_cast<int>(::syscall(SYS_pidfd_open, made.process.pid(), 0)));
      if (made.end) wake_on(made.end.get());
      workers_.emplace(order.worker, std::move(made));
      tell(comm::Packet() << order::started << order.worker);
    } catch (const Error& error) {
      tell(comm::Packet() << order::refused << order.worker << error.what());
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
      tell(to_packet(EndedWorker{at->first, *exit}));
      at = workers_.erase(at);
    }
  }

  // That the lab is gone is found out where it is listened to.
  void tell(const comm::Packet& packet) { line_.send(packet, Clock::now() + kAnswer); }

  const int rank_;
  FileDescriptor epoll_;
  LabAddress lab_;
  comm::MessageClient line_;
  std::optional<runner::Interruption> interruption_;
  std::map<WorkerId, Worker> workers_;
};

}  // namespace

int serve_agent(const comm::LaunchEnvironment& launch, const LaunchOrders& orders) {
  return Agent(launch, orders).serve();
}

}  // namespace syslab::agents
