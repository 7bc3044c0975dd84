#include "agents/line.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "runner/interruption.hpp"

namespace syslab::agents {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kHurried = 400ms;
constexpr auto kArrival = 1s;  // for a worker's last output, once it is known to have ended

template <typename Value>
std::optional<Value> take(std::map<WorkerId, Value>& from, WorkerId worker) {
  const auto found = from.find(worker);
  if (found == from.end()) return std::nullopt;
  std::optional<Value> value = std::move(found->second);
  from.erase(found);
  return value;
}

}  // namespace

std::chrono::milliseconds patience() {
  return runner::Interruption::latest() != 0 ? kHurried : std::chrono::milliseconds(kAnswer);
}

Line::Line(comm::MessageClient client, int rank, Seat seat)
    : client_(std::move(client)),
      seat_(std::move(seat)),
      who_(fmt::format("the agent of rank {} on {}", rank, seat_.host)) {}

void Line::send(const comm::Packet& packet) {
  if (!lost_.empty()) return;
  if (!client_.send(packet, Clock::now() + patience())) give_up("takes no orders");
}

void Line::listen(Deadline deadline, int wake) {
  while (lost_.empty()) {
    const comm::MessageClient::Message message = client_.receive(deadline, wake);
    if (message.state == comm::Received::nothing) return;
    if (message.state == comm::Received::end) return give_up("has ended");
    try {
      comm::PacketReader packet(message.payload);
      const std::uint64_t what = packet.number();
      heard_ = Clock::now();
      if (what == order::alive) send(comm::Packet() << order::alive);
      if (what == order::ended) {
        const EndedWorker ended = read_ended(packet);
        ended_[ended.worker] = ended.exit;
        stopped_.erase(ended.worker);
      } else if (what == order::started || what == order::refused) {
        const WorkerId worker = packet.number();
        started_[worker] = what == order::refused ? packet.text() : "";
      } else if (what == order::stopped) {
        const WorkerId worker = packet.number();
        packet.number() != 0 ? void(stopped_.insert(worker)) : void(stopped_.erase(worker));
      }
    } catch (const Error& error) {
      return give_up(fmt::format("does not speak as an agent does ({})", error.what()));
    }
    deadline = Clock::now();  // and what else has come
  }
}

void Line::listen_to_the_end(Deadline deadline) {
  while (lost_.empty() && Clock::now() < deadline) listen(deadline);
}

void Line::give_up(const std::string& why) {
  lost_ = fmt::format("{} {}; its workers end with it", who_, why);
  client_.close();  // so that the agent, if it is alive, learns that it is to end
}

std::optional<ExitStatus> Line::take_end(WorkerId worker) { return take(ended_, worker); }

std::optional<std::string> Line::take_start(WorkerId worker) { return take(started_, worker); }

RemoteWorker::RemoteWorker(std::shared_ptr<Line> line, WorkerId worker, comm::MessageClient connection)
    : line_(std::move(line)), worker_(worker) {
  std::vector<Relay::Stream> ends;
  for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0) {
      throw_errno(ErrorKind::internal, "open a worker's stream", errno, "socketpair");
    }
    streams_[stream].reset(pair[0]);
    ends.push_back({stream, FileDescriptor(pair[1]), stream == 0 ? Relay::Way::to_peer : Relay::Way::from_peer});
  }
  relay_ = std::make_unique<Relay>(std::move(connection), std::move(ends));
}

RemoteWorker::~RemoteWorker() {
  if (!status_ && !told_) kill_group(SIGKILL);
}

void RemoteWorker::kill_group(int signal) {
  if (status_ || told_) return;
  line_->send(comm::Packet() << order::signal << worker_ << static_cast<std::uint64_t>(signal));
  // Whoever does not answer anyway is asked once.
  if (signal == SIGKILL && !answer_by_) answer_by_ = Clock::now() + (line_->is_out_of_reach() ? kHurried : patience());
}

bool RemoteWorker::is_out_of_reach() {
  line_->listen(Clock::now());
  return !told_ && line_->is_out_of_reach();
}

bool RemoteWorker::is_stopped() {
  line_->listen(Clock::now());
  return !told_ && line_->is_stopped(worker_);
}

// The other end has closed both streams, so everything they carried has arrived.
bool RemoteWorker::all_has_arrived() const {
  std::array<pollfd, 2> streams{{{from_child(), POLLRDHUP, 0}, {error_output(), POLLRDHUP, 0}}};
  ::poll(streams.data(), streams.size(), 0);
  return streams[0].revents != 0 && streams[1].revents != 0;
}

// The message of the worker's end comes on the line and may arrive before the worker's last output, which comes on its
// streams.
std::optional<ExitStatus> RemoteWorker::poll() {
  if (status_) return status_;
  if (!told_) {
    line_->listen(Clock::now());
    told_ = line_->take_end(worker_);
    if (told_) {
      arrive_by_ = Clock::now() + kArrival;
    } else if (line_->lost().empty() && answer_by_ && Clock::now() >= *answer_by_) {
      line_->give_up("does not answer");
    }
    if (!told_ && !line_->lost().empty()) {
      status_.emplace();
      status_->lost = line_->lost();
      return status_;
    }
  }
  if (told_ && (all_has_arrived() || Clock::now() >= arrive_by_)) status_ = told_;
  return status_;
}

}  // namespace syslab::agents
