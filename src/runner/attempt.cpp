#include "runner/attempt.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/pipe.hpp"
#include "core/process.hpp"
#include "runner/verdict.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kHeartbeat = 5s;
constexpr auto kTick = 250ms;      // a worker that dies while a child of it holds its pipe open is noticed at a tick
constexpr auto kExitingTime = 2s;  // from its last word to its exit
constexpr std::size_t kTailBytes = 8192;

// What a worker finds in its environment beside ours. A law makes thousands of tiny parallel loops and times none of
// them: threads that spin while they wait would take the cores from those that work.
std::map<std::string, std::string> environment_of(const worker::CaseRequest& request, const RunOptions& options) {
  std::map<std::string, std::string> environment = options.environment;
  if (request.task == "law" && std::getenv("OMP_WAIT_POLICY") == nullptr) {
    environment.emplace("OMP_WAIT_POLICY", "passive");
  }
  return environment;
}

class Attempt {
 public:
  Attempt(const worker::CaseRequest& request, const RunOptions& options)
      : process_(Process::spawn({options.worker_command, environment_of(request, options)})),
        reader_(process_.from_child()),
        errors_(process_.error_output(), kTailBytes),
        deadline_(Clock::now() + options.timeout) {
    // All at once: a worker that dies before it has read them is explained by its end, not by our failed write.
    try {
      write_frame(
          process_.to_child(),
          {{"type", "hello"}, {"protocol", worker::kProtocolVersion}, {"host", "syslab " + build_info().version}});
      write_frame(process_.to_child(), worker::to_json(request));
      write_frame(process_.to_child(), {{"type", "bye"}});
    } catch (const Error&) {
    }
  }

  // Until the worker has ended, whatever the reason.
  void watch(const plan::PlannedCase& planned, const Observer& observer, const Interruption& interruption) {
    const auto begin = Clock::now();
    auto next_heartbeat = begin + kHeartbeat;
    bool errors_open = true;
    while (true) {
      if (interruption.signal() != 0) {
        ending_.interrupted = interruption.signal();
        return stop();
      }
      const auto now = Clock::now();
      if (now >= deadline_) {
        ending_.timed_out = !ending_.end;
        return stop();
      }
      if (now >= next_heartbeat) {
        if (observer.heartbeat) observer.heartbeat(planned);
        next_heartbeat = now + kHeartbeat;
      }
      const auto wake = std::min({deadline_, next_heartbeat, now + kTick});
      const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(wake - now).count();
      std::array<struct pollfd, 3> wait{
          {{process_.from_child(), POLLIN, 0}, {interruption.fd(), POLLIN, 0}, {process_.error_output(), POLLIN, 0}}};
      const int ready = ::poll(wait.data(), errors_open ? 3 : 2, static_cast<int>(wait_ms));
      if (ready == 0 && process_.poll()) return bury();
      if (ready <= 0) continue;
      if (errors_open && wait[2].revents != 0) errors_open = errors_.drain();
      if (wait[0].revents != 0 && !receive(planned, observer)) return bury();
    }
  }

  Ending take_ending() { return std::move(ending_); }

 private:
  // Reads what is there. False when nothing more will come that could be understood.
  bool receive(const plan::PlannedCase& planned, const Observer& observer) {
    std::optional<worker::ProgressRecord> progress;
    bool more = true;
    try {
      while (more) {
        const FrameReader::Result result = reader_.read(0ms);
        if (result.state == FrameReader::State::timeout) break;
        more = result.state == FrameReader::State::frame;
        if (more) accept(result.text, progress);
      }
    } catch (const Error& error) {
      ending_.protocol_error = error.what();
      process_.kill_group(SIGKILL);
      more = false;
    }
    if (progress && observer.progress) observer.progress(planned, *progress);
    return more;
  }

  void accept(const std::string& text, std::optional<worker::ProgressRecord>& progress) {
    const Json message = Json::parse(text, nullptr, false);
    if (message.is_discarded()) throw Error(ErrorKind::comm, "a frame of the worker is no JSON");
    const std::string type = message.is_object() ? message.value("type", "") : "";
    if (!greeted_) return accept_greeting(message, type);
    if (ending_.end) throw Error(ErrorKind::comm, fmt::format("the worker sent '{}' after its end", type));
    worker::Record record = worker::record_from_json(message);
    if (auto* fraction = std::get_if<worker::ProgressRecord>(&record)) {
      ending_.last_progress = fraction->text;
      progress = std::move(*fraction);
    } else if (const auto* end = std::get_if<worker::EndRecord>(&record)) {
      ending_.end = *end;
      deadline_ = std::min(deadline_, Clock::now() + kExitingTime);
    } else {
      ending_.records.push_back(std::move(record));
    }
  }

  void accept_greeting(const Json& message, const std::string& type) {
    if (type == "failed") {
      throw Error(ErrorKind::comm, fmt::format("the worker could not start: {}", message.value("message", "")));
    }
    const Json version = message.value("protocol", Json());
    if (type != "hello" || version != worker::kProtocolVersion) {
      throw Error(ErrorKind::comm,
                  fmt::format("expected a worker's hello in version {} of the protocol, found {} in version {}",
                              worker::kProtocolVersion, type.empty() ? "no type" : "'" + type + "'", version.dump()));
    }
    greeted_ = true;
  }

  void stop() {
    process_.kill_group(SIGKILL);
    bury();
  }

  // Its pipe is closed or it was killed: give it a moment to exit, then collect what it left.
  void bury() {
    const auto deadline = Clock::now() + kExitingTime;
    for (auto pause = 50us; !process_.poll(); pause = std::min<std::chrono::microseconds>(2 * pause, 5000us)) {
      if (Clock::now() >= deadline) process_.kill_group(SIGKILL);
      std::this_thread::sleep_for(pause);
    }
    ending_.exit = process_.wait();
    try {  // records that were on their way when it was killed or died
      std::optional<worker::ProgressRecord> progress;
      while (ending_.protocol_error.empty()) {
        const FrameReader::Result result = reader_.read(0ms);
        if (result.state != FrameReader::State::frame) break;
        accept(result.text, progress);
      }
    } catch (const Error& error) {
      ending_.protocol_error = error.what();
    }
    ending_.pending_bytes = reader_.pending_bytes();
    errors_.drain();
    ending_.stderr_tail = errors_.last_lines(40);
    ending_.last_lines = errors_.last_lines(5);
  }

  Process process_;
  FrameReader reader_;
  TailReader errors_;
  Clock::time_point deadline_;
  bool greeted_ = false;
  Ending ending_;
};

}  // namespace

AttemptResult run_attempt(const plan::PlannedCase& planned, const worker::CaseRequest& request,
                          const RunOptions& options, const Observer& observer, const Interruption& interruption) {
  AttemptResult result;
  result.planned = &planned;
  if (observer.started) observer.started(planned);
  result.started_at = utc_now();
  const auto begin = Clock::now();
  const OomWitness witness;
  Ending ending;
  try {
    Attempt attempt(request, options);
    attempt.watch(planned, observer, interruption);
    ending = attempt.take_ending();
  } catch (const Error& error) {
    if (error.call() != "execve" && error.call() != "vfork" && error.call() != "pipe2") throw;
    ending.not_started = error.what();
  }
  result.wall = Clock::now() - begin;
  result.ended_at = utc_now();
  judge(ending, options, witness, result);
  return result;
}

}  // namespace syslab::runner
