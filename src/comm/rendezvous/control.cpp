#include "comm/rendezvous/control.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "comm/rendezvous/process_name.hpp"
#include "core/error.hpp"
#include "core/ids.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto kLookForFailure = 125ms;  // between looks at whether something failed here
constexpr auto kThisRankAway = 1s;
constexpr auto kSendLimit = 1s;    // of a message of some hundred bytes: longer, and the other end is not reading
constexpr auto kAnswerLimit = 1s;  // of the coordinator's decision after a time-out

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Control::Control(Rendezvous& rendezvous, ControlOptions options)
    : options_([&] {
        if (options.soft == 0ms) options.soft = options.limit / 2;
        if (!options.exit) options.exit = [](Fault code) { ::_exit(static_cast<int>(code)); };
        return std::move(options);
      }()),
      rank_(rendezvous.rank()),
      size_(rendezvous.size()),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw_errno(ErrorKind::comm, "make an event descriptor", errno, "eventfd");
  connect(rendezvous);
  heard_ = waiting_since_ = Clock::now();
  thread_ = std::thread([this] { run(); });
}

void Control::connect(Rendezvous& rendezvous) {
  const std::string at = options_.name + "/at";
  const milliseconds limit = options_.limit;
  const auto key_of = [&](const std::string& token) { return derived(rendezvous.key(), "control " + token); };
  const std::string system = this_process().system;
  // Socket files are for one host: a directory may be shared by several.
  const std::vector<std::string> systems = rendezvous.gather(options_.name + "/host", system, limit);
  const bool unix_socket = !rendezvous.directory().empty() &&
                           std::all_of(systems.begin(), systems.end(), [&](const auto& one) { return one == system; });
  const std::string file = "socket-" + options_.name;
  if (rank_ == 0) {
    const std::string host = rendezvous.host().empty() ? this_process().host : rendezvous.host();
    FileDescriptor listener = unix_socket ? listen_unix(rendezvous.directory(), file) : listen_tcp(host, 0);
    if (!listener) throw_errno(ErrorKind::comm, "listen for the other ranks", errno, "bind");
    const std::uint64_t port = unix_socket ? 0 : static_cast<std::uint64_t>(port_of(listener));
    if (unix_socket) socket_file_ = rendezvous.directory() / file;
    const std::string token = new_uuid7();
    coordinator_ = std::make_unique<ControlCoordinator>(std::move(listener), key_of(token), size_, limit);
    rendezvous.set(at, (Packet() << host << port << token).bytes());
  }
  const std::string told = rendezvous.get(at, limit);
  PacketReader address(told);
  const std::string host = address.text();
  const int port = static_cast<int>(address.number());
  const std::string token = address.text();
  const Deadline deadline = Clock::now() + limit;
  const auto connect_once = [&](Deadline until) {
    if (unix_socket) return connect_unix(rendezvous.directory(), file);
    // The address is rank 0's name as other hosts know it; rank 0's own host may not resolve it.
    Connected connected = connect_tcp(rank_ == 0 ? "127.0.0.1" : host, port, until);
    if (!connected.socket && rank_ == 0) connected = connect_tcp(host, port, until);
    return connected;
  };
  std::string why;
  client_ = connect_proven(connect_once, key_of(token), deadline, why);
  if (!client_) {
    const std::string reason =
        fmt::format("rank {} cannot connect to rank 0 at {}: {}", rank_,
                    unix_socket ? (rendezvous.directory() / file).string() : fmt::format("{}:{}", host, port), why);
    rendezvous.fail(reason);
    throw RankError(Fault::rendezvous, reason);
  }
  client_.send(Packet() << control_message::hello << static_cast<std::uint64_t>(rank_) << this_process().text(),
               deadline);
  if (client_.receive(deadline).state != Received::bytes) {
    throw RankError(Fault::rendezvous, fmt::format("rank {} is not let in by rank 0", rank_));
  }
  rendezvous.wait_all(options_.name + "/connected", limit);
}

void Control::set_phase(std::string_view phase, std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  step_ = step;
}

void Control::fail(std::string_view text) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (own_failure_.reason.empty()) own_failure_ = {{EndingKind::failure, rank_}, std::string(text), {}, 0};
  } catch (...) {  // no memory for the text: the connection closes without a farewell, which tells the others the same
  }
  wake();
}

std::optional<Ending> Control::ending() const {
  const std::lock_guard lock(mutex_);
  return ending_;
}

void Control::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Control::leave() noexcept {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(leaving_, true)) return;
    wake();
    if (rank_ == 0) {
      changed_.wait_until(lock, Clock::now() + options_.limit, [this] { return all_left_ || ending_; });
    }
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  if (ending_thread_.joinable()) ending_thread_.join();
  coordinator_ = nullptr;
  client_.close();
  std::error_code gone;
  if (!socket_file_.empty()) std::filesystem::remove(socket_file_, gone);
}

void Control::say(const std::string& text) const {
  const std::string line = fmt::format("rank {} of {}: {}", rank_, size_, text);
  if (options_.say) {
    options_.say(line);
  } else {
    fmt::print(stderr, "syslab: {}\n", line);
  }
}

// --- the thread ------------------------------------------------------------------------------------------------------

void Control::run() {
  while (true) {
    const MessageClient::Message message =
        client_.receive(std::min(next_beat_, Clock::now() + kLookForFailure), wake_.get());
    std::uint64_t woken = 0;
    [[maybe_unused]] const ssize_t drained = ::read(wake_.get(), &woken, sizeof woken);
    hear(message);
    look_for_failure();
    bool leaving = false, stopping = false;
    {
      const std::lock_guard lock(mutex_);
      leaving = leaving_;
      stopping = stopping_;
    }
    beat(leaving && !said_farewell_);
    if (leaving && !std::exchange(said_farewell_, true)) send(control_message::bye, sample());
    if (stopping) return;
    // Nobody to receive from: do not spin on a closed connection.
    if (alone_) std::this_thread::sleep_for(5ms);
  }
}

void Control::hear(const MessageClient::Message& message) {
  if (alone_ || message.state == Received::nothing) return;
  if (message.state == Received::end) {
    alone_ = true;
    if (said_farewell_) return;
    return finish({{EndingKind::death, 0},
                   "rank 0, which coordinates the ranks, ended without a word: it was killed or crashed",
                   watched_.waiting,
                   watched_.waiting_number});
  }
  heard_ = Clock::now();
  PacketReader packet(message.payload);
  switch (packet.number()) {
    case control_message::told:
      say(fmt::format("waits for {:.1f} s in {}: {}", seconds(Clock::now() - waiting_since_), watched_.waiting,
                      packet.text()));
      break;
    case control_message::ending:
      finish(read_ending(packet));
      break;
    case control_message::all_left: {
      const std::lock_guard lock(mutex_);
      all_left_ = true;
      changed_.notify_all();
      break;
    }
    default:
      break;
  }
}

Progress Control::sample() const {
  Progress progress;
  if (options_.progress) progress = options_.progress();
  const std::lock_guard lock(mutex_);
  progress.phase = phase_;
  progress.step = step_;
  return progress;
}

void Control::send(std::uint64_t what, const Progress& progress, const Ending& ending) {
  if (alone_) return;
  Packet packet;
  packet << what << progress;
  if (what == control_message::fail) packet << ending;
  client_.send(packet, Clock::now() + kSendLimit);  // if it fails, the next receive() reports it
}

void Control::look_for_failure() {
  Ending failure;
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || asked_to_end_) return;
    failure = own_failure_;
  }
  if (failure.reason.empty() && options_.failure) failure = options_.failure();
  if (failure.reason.empty()) return;
  asked_to_end_ = true;
  send(control_message::fail, sample(), failure);
}

void Control::beat(bool now) {
  // Taken once: if this rank is stopped between here and the end, the next beat is late and sees it.
  const Deadline began = Clock::now();
  if (said_farewell_ || (!now && began < next_beat_)) return;
  // If this rank was itself stopped or starved, it could hear nobody and end no operation: no other rank is to blame
  // for the silence, nor for the wait.
  if (began - next_beat_ > kThisRankAway && next_beat_ != Deadline{}) heard_ = waiting_since_ = began;
  next_beat_ = began + options_.beat;
  const Progress progress = sample();
  send(control_message::beat, progress);
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || leaving_) return;
  }
  if (const auto silent = began - heard_; silent > options_.limit && !alone_) {
    return finish(
        {{EndingKind::silence, 0},
         fmt::format("rank 0, which coordinates the ranks, has not been heard for {:.1f} s: it is stopped, or its host "
                     "is gone",
                     seconds(silent)),
         progress.waiting,
         progress.waiting_number});
  }
  watch(progress, began);
}

void Control::watch(const Progress& progress, Deadline now) {
  if (progress.waiting != watched_.waiting) {
    waiting_since_ = now;
    warned_ = false;
  }
  watched_ = progress;
  if (progress.waiting.empty()) return;
  const auto waited = now - waiting_since_;
  if (waited > options_.soft && !std::exchange(warned_, true)) send(control_message::ask, progress);
  if (waited > options_.limit && !std::exchange(asked_to_end_, true)) send(control_message::time_out, progress);
  if (waited > options_.limit + kAnswerLimit) {
    finish({{EndingKind::time_out, -1},
            fmt::format("rank {} waits for {:.1f} s in {}, and rank 0 does not say why", rank_, seconds(waited),
                        progress.waiting),
            progress.waiting,
            progress.waiting_number});
  }
}

void Control::finish(const Ending& ending) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = ending;
    changed_.notify_all();
    if (leaving_) return;  // this rank is done; the others are told by rank 0
  }
  say(fmt::format("all ranks end: {}", ending.reason));
  if (options_.last_words) say(options_.last_words());
  if (!options_.end) return;
  ending_thread_ = std::thread([this, ending] {
    options_.end(ending);
    const std::lock_guard lock(mutex_);
    ended_here_ = true;
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, options_.budget, [this] { return ended_here_; })) return;
  lock.unlock();
  const Fault code = fault_of(ending, rank_);
  say(fmt::format("its communication does not let itself be ended within {:.1f} s: the process ends with code {}",
                  seconds(options_.budget), static_cast<int>(code)));
  options_.exit(code);
}

}  // namespace syslab::comm
