#include "runner/attempt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/units.hpp"
#include "runner/verdict.hpp"
#include "runner/worker_process.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

// What a worker finds in its environment beside ours. A law makes thousands of tiny parallel loops and times none of
// them: threads that spin while they wait would take the cores from those that work.
std::map<std::string, std::string> environment_of(const worker::CaseRequest& request, const RunOptions& options) {
  std::map<std::string, std::string> environment = options.environment;
  if (request.task == "law" && std::getenv("OMP_WAIT_POLICY") == nullptr) {
    environment.emplace("OMP_WAIT_POLICY", "passive");
  }
  return environment;
}

// What an attempt may leave behind: beyond it a worker has lost its way, and its records would take our memory.
constexpr std::size_t kMostRecords = 1'000'000;
constexpr std::size_t kMostRecordBytes = 256U << 20;

constexpr auto kExitingTime = 2s;      // from its last word to its exit
constexpr auto kProgressPause = 50ms;  // between two progress records that are passed on

// The records of one case as they come from one worker, until its end.
class Attempt {
 public:
  Attempt(const worker::CaseRequest& request, const RunOptions& options)
      : worker_({options.worker_command, environment_of(request, options)}), deadline_(Clock::now() + options.timeout) {
    // All at once: a worker that dies before it has read them is explained by its end, not by our failed write.
    worker_.send(worker::to_json(request));
    worker_.send({{"type", "bye"}});
  }

  // Until the worker has ended, whatever the reason.
  Ending watch(const plan::PlannedCase& planned, const Observer& observer, const Interruption& interruption) {
    Watch watch(interruption, [&] {
      if (observer.heartbeat) observer.heartbeat(planned);
    });
    auto next_progress = Clock::now();
    while (true) {
      const auto wake = progress_ ? std::min(deadline_, next_progress) : deadline_;
      const Heard heard = worker_.next(wake, watch);
      if (progress_ && Clock::now() >= next_progress) {
        if (observer.progress) observer.progress(planned, *progress_);
        progress_.reset();
        next_progress = Clock::now() + kProgressPause;
      }
      if (heard.state == Heard::State::message && accept(heard.text)) continue;
      if (heard.state == Heard::State::late && Clock::now() < deadline_) continue;
      if (heard.state == Heard::State::interrupted) ending_.interrupted = interruption.signal();
      if (heard.state == Heard::State::late) ending_.timed_out = !ending_.end;
      if (heard.state == Heard::State::broken) ending_.protocol_error = heard.text;
      if (heard.state != Heard::State::gone) worker_.kill();
      break;
    }
    bury();
    if (progress_ && observer.progress) observer.progress(planned, *progress_);
    return std::move(ending_);
  }

 private:
  // False when the worker does not speak the protocol; it is not listened to any more.
  bool accept(const std::string& text) {
    try {
      take(text);
      return true;
    } catch (const Error& error) {
      ending_.protocol_error = error.what();
      return false;
    }
  }

  void take(const std::string& text) {
    const Json message = parse_message(text);
    if (ending_.end) {
      throw Error(ErrorKind::comm,
                  fmt::format("the worker sent {} after its end", message.value("type", Json()).dump()));
    }
    worker::Record record = worker::record_from_json(message);
    if (auto* fraction = std::get_if<worker::ProgressRecord>(&record)) {
      ending_.last_progress = fraction->text;
      progress_ = std::move(*fraction);
    } else if (const auto* end = std::get_if<worker::EndRecord>(&record)) {
      ending_.end = *end;
      deadline_ = std::min(deadline_, Clock::now() + kExitingTime);
    } else {
      record_bytes_ += text.size();
      if (ending_.records.size() >= kMostRecords || record_bytes_ > kMostRecordBytes) {
        throw Error(ErrorKind::comm, fmt::format("the case sent more than an attempt may hold ({} records or {})",
                                                 kMostRecords, format_bytes(kMostRecordBytes)));
      }
      ending_.records.push_back(std::move(record));
    }
  }

  void bury() {
    Remains remains = worker_.bury();
    for (const std::string& text : remains.late) {
      if (!ending_.protocol_error.empty() || !accept(text)) break;
    }
    if (ending_.protocol_error.empty()) ending_.protocol_error = remains.broken;
    ending_.exit = remains.exit;
    ending_.pending_bytes = remains.pending_bytes;
    ending_.stderr_tail = std::move(remains.stderr_tail);
    ending_.last_lines = std::move(remains.last_lines);
  }

  WorkerProcess worker_;
  Clock::time_point deadline_;
  std::optional<worker::ProgressRecord> progress_;  // not passed on yet
  std::size_t record_bytes_ = 0;
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
    ending = Attempt(request, options).watch(planned, observer, interruption);
  } catch (const Error& error) {
    if (!WorkerProcess::could_not_start(error)) throw;
    ending.not_started = error.what();
  }
  result.wall = Clock::now() - begin;
  result.ended_at = utc_now();
  judge(ending, options, witness, result);
  return result;
}

}  // namespace syslab::runner
