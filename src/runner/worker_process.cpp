#include "runner/worker_process.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/files/temporary_folder.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "runner/patience.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

constexpr auto kHeartbeat = 5s;
constexpr std::size_t kTailBytes = 8192;
constexpr std::size_t kMostLateFrames = 100'000;  // a pipe holds 64 KiB; more means that somebody still writes

// Enough for a metric with its name and rank.
std::string excerpt(std::string_view text) { return one_line(cut_to(std::string(text), 300)); }

std::unique_ptr<Hosted> start(const WorkerProcess::Command& command) {
  const SpawnOptions options{command.argv, command.environment};
  return command.places == nullptr ? start_here(options) : command.places->start(command.rank, options);
}

}  // namespace

Watch::Watch(const Interruption& interruption, std::function<void()> heartbeat)
    : interruption_(interruption), heartbeat_(std::move(heartbeat)), next_(Clock::now() + kHeartbeat) {}

void Watch::tick(Clock::time_point now) {
  if (now < next_) return;
  next_ = now + kHeartbeat;
  if (heartbeat_) heartbeat_();
}

Json parse_message(const std::string& text) {
  if (const std::string fault = nesting_fault(text); !fault.empty()) {
    throw Error(ErrorKind::comm, fmt::format("a frame of the worker is {}", fault));
  }
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::comm, fmt::format("a frame of the worker is no JSON{}: {}", why, excerpt(text)));
  };
  Json message;
  try {
    message = parse_json(text);
  } catch (const std::exception& error) {  // no JSON, or a number that no double holds, such as 1e999
    refuse(fmt::format(" ({})", excerpt(error.what())));
  }
  if (!message.is_object()) refuse(" object");
  return message;
}

WorkerProcess::WorkerProcess(const Command& command)
    : argv_(command.argv),
      process_(start(command)),
      reader_(process_->from_child()),
      errors_(process_->error_output(), kTailBytes) {
  send({{"type", "hello"}, {"protocol", worker::kWireVersion}, {"host", "syslab " + build_info().version}});
}

void require_bursts(const WorkerProcess& worker) {
  if (worker.serves("bursts")) return;
  throw Error(ErrorKind::comm, fmt::format("this worker does not serve bursts, which a comparison is made of: is it "
                                           "of an older build? ({})",
                                           fmt::join(worker.command(), " ")));
}

WorkerProcess::~WorkerProcess() {
  if (process_ == nullptr || process_->poll()) return;
  process_.reset();
  remove_left_folders();
}

bool WorkerProcess::could_not_start(const Error& error) {
  return error.call() == "execve" || error.call() == "vfork" || error.call() == "pipe2" || error.call() == kNoPlace;
}

void WorkerProcess::send(const Json& message) {
  try {
    write_frame(process_->to_child(), message);
  } catch (const Error&) {
  }
}

std::optional<Heard> WorkerProcess::heard() {
  using State = Heard::State;
  try {
    while (true) {
      FrameReader::Result result = reader_.read(0ms);
      if (result.state == FrameReader::State::end) return Heard{State::gone, {}};
      if (result.state == FrameReader::State::timeout) break;
      if (greeted_) return Heard{State::message, std::move(result.text)};
      accept_greeting(result.text);
    }
  } catch (const Error& error) {
    return Heard{State::broken, error.what()};
  }
  if (errors_open_) errors_open_ = errors_.drain();
  // Output between these two checks is found when the process is reaped.
  if (process_->poll()) return Heard{State::gone, {}};
  return std::nullopt;
}

Heard WorkerProcess::next(Clock::time_point deadline, Watch& watch) {
  using State = Heard::State;
  while (true) {
    if (watch.interruption().signal() != 0) return {State::interrupted, {}};
    const auto now = Clock::now();
    watch.tick(now);
    if (now >= deadline) return {State::late, {}};  // before reading: a worker that never stops talking is late, too
    if (std::optional<Heard> something = heard()) return std::move(*something);
    const auto wake = std::min({deadline, watch.next_heartbeat(), now + kTick});
    const auto wait_ms = std::max<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(wake - now).count(), 0);
    std::array<struct pollfd, 3> wait{
        {{output(), POLLIN, 0}, {watch.interruption().fd(), POLLIN, 0}, {error_output(), POLLIN, 0}}};
    ::poll(wait.data(), wait.size(), static_cast<int>(wait_ms));
  }
}

void WorkerProcess::accept_greeting(const std::string& text) {
  const Json message = parse_message(text);
  const Json type = message.value("type", Json());
  const std::string name = type.is_string() ? type.get<std::string>() : "";
  if (name == "failed") {
    throw Error(ErrorKind::comm, fmt::format("the worker could not start: {}", message.value("message", "")));
  }
  const Json version = message.value("protocol", Json());
  if (name != "hello" || version != worker::kWireVersion) {
    throw Error(ErrorKind::comm,
                fmt::format("expected a worker's hello in version {} of the wire format, found {} in version {}",
                            worker::kWireVersion, name.empty() ? "no type" : "'" + name + "'", json_text(version)));
  }
  for (const Json& word : message.value("serves", Json::array())) {
    if (word.is_string()) serves_.push_back(word.get<std::string>());
  }
  greeted_ = true;
}

bool WorkerProcess::serves(std::string_view what) const {
  return std::find(serves_.begin(), serves_.end(), what) != serves_.end();
}

// The kernel tells the parent when the worker's own last thread has stopped.
Standstill WorkerProcess::suspend() {
  process_->kill_group(SIGSTOP);
  siginfo_t info{};
  const auto pid = static_cast<id_t>(process_->pid());
  while (::waitid(P_PID, pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  if (info.si_code == CLD_STOPPED) ::waitid(P_PID, pid, &info, WSTOPPED | WNOHANG);  // told once
  return {process_->pid(), Standstill::kLimit};
}

void WorkerProcess::resume() { process_->kill_group(SIGCONT); }

bool WorkerProcess::is_idle() {
  struct pollfd wait {
    process_->from_child(), POLLIN, 0
  };
  return greeted_ && reader_.pending_bytes() == 0 && ::poll(&wait, 1, 0) == 0 && !process_->poll();
}

std::string WorkerProcess::last_lines(std::size_t count) {
  if (errors_open_) errors_open_ = errors_.drain();
  return errors_.last_lines(count);
}

void WorkerProcess::forget_output() {
  if (errors_open_) errors_open_ = errors_.drain();
  errors_ = TailReader(process_->error_output(), kTailBytes);
}

void WorkerProcess::kill() { process_->kill_group(SIGKILL); }

Remains WorkerProcess::bury() {
  const auto deadline = Clock::now() + kExitingTime;
  for (auto pause = 50us; !process_->poll(); pause = std::min<std::chrono::microseconds>(2 * pause, 5000us)) {
    if (Clock::now() >= deadline) kill();
    std::this_thread::sleep_for(pause);
  }
  Remains remains;
  remains.exit = *process_->poll();
  if (remains.exit.signalled) remove_left_folders();  // what it made, and what is judged filled, is nobody's now
  try {
    while (remains.late.size() < kMostLateFrames) {
      FrameReader::Result result = reader_.read(0ms);
      if (result.state != FrameReader::State::frame) break;
      if (greeted_) {
        remains.late.push_back(std::move(result.text));
      } else {
        accept_greeting(result.text);
      }
    }
  } catch (const Error& error) {
    remains.broken = error.what();
  }
  remains.pending_bytes = reader_.pending_bytes();
  if (errors_open_) errors_.drain();
  remains.stderr_tail = errors_.last_lines(40);
  remains.last_lines = errors_.last_lines(5);
  return remains;
}

}  // namespace syslab::runner
