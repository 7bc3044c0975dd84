#include "runner/ranks/gang.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "runner/patience.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

constexpr int kMessagesAtOnce = 256;  // of one rank, before the others have their turn
constexpr auto kNever = Clock::time_point::max();
// What counts of the time between two looks at whether a rank is stopped. If a whole job is suspended, the lab may go
// on a moment before its ranks do, and that was not their fault.
constexpr std::chrono::nanoseconds kLongestLook = 1s;

// Ranks that each took all processors would mostly wait for each other.
void share_processors(std::map<std::string, std::string>& environment, int ranks) {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return;
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  environment.emplace("OMP_NUM_THREADS", std::to_string(std::max(1U, cores / static_cast<unsigned>(ranks))));
}

}  // namespace

Gang::Gang(const worker::CaseRequest& request, WorkerProcess::Command command, std::chrono::milliseconds limit)
    : limit_(limit) {
  Places* const places = command.places;
  if (places == nullptr) share_processors(command.environment, request.world_size);
  const std::string address = places == nullptr ? "" : places->rendezvous(request.world_size);
  for (int number = 0; number < request.world_size; ++number) {
    Rank& rank = ranks_.emplace_back();
    rank.ending().one_of_ranks = true;
    worker::CaseRequest own = request;
    own.rank = number;
    rank.intake.sender = fmt::format("the worker of '{}'", request.implementation);
    if (own.device == DeviceKind::cuda) own.device_index = number;
    own.rendezvous = address.empty() ? rendezvous_.text() : address;
    if (places == nullptr) {
      start(rank, own, command);
    } else {
      rank.ending().host = places->host(number);
      if (own.device == DeviceKind::cuda) own.device_index = places->device_index(number);
      WorkerProcess::Command there = command;
      there.rank = number;
      if (const int threads = places->threads(number, request.world_size); threads > 0) {
        there.environment.emplace("OMP_NUM_THREADS", std::to_string(threads));
      }
      start(rank, own, there);
    }
    if (rank.gone) {
      end_all([](Rank& other) { other.silenced = true; });
      return;
    }
  }
}

void Gang::start(Rank& rank, const worker::CaseRequest& request, const WorkerProcess::Command& command) {
  try {
    rank.worker = std::make_unique<WorkerProcess>(command);
    rank.worker->send(worker::to_json(request));
  } catch (const Error& error) {
    if (!WorkerProcess::could_not_start(error)) throw;
    rank.ending().not_started = error.what();
    rank.gone = true;
    ended_badly(rank);
  }
}

void Gang::send(const Json& message) {
  for (Rank& rank : ranks_) {
    if (!rank.gone) rank.worker->send(message);
  }
}

void Gang::end_all(const std::string& why) {
  end_all([&](Rank& rank) {
    rank.ending().wire_error = why;
    ended_badly(rank);
  });
}

bool Gang::over() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& it) { return it.gone; });
}

bool Gang::ended_well() const {
  return over() && std::all_of(ranks_.begin(), ranks_.end(),
                               [](const Rank& it) { return it.intake.ending.end && !it.bad && !it.silenced; });
}

std::vector<pid_t> Gang::pids() const {
  std::vector<pid_t> all;
  for (const Rank& rank : ranks_) {
    if (!rank.gone && rank.worker->pid() > 0) all.push_back(rank.worker->pid());
  }
  return all;
}

std::vector<RankEnding> Gang::endings() {
  std::vector<RankEnding> all;
  for (Rank& rank : ranks_) {
    all.push_back({std::move(rank.ending()), rank.bad, rank.silenced, rank.stopped_for, rank.overdue});
  }
  return all;
}

bool Gang::hear(std::string_view wanted, const Use& use, const Hearing& how) {
  const Interruption& interruption = how.watch.interruption();
  for (Rank& rank : ranks_) rank.answered = false;
  while (!over()) {
    const auto now = Clock::now();
    how.watch.tick(now);
    look_for_stopped(now);
    if (interruption.signal() != 0) {
      end_all([&](Rank& rank) { rank.ending().interrupted = interruption.signal(); });
    } else if (now >= how.deadline) {
      end_all([](Rank& rank) { rank.ending().timed_out = !rank.ending().end; });
    } else if (one_is_stopped_for_too_long()) {
      end_all([](Rank& rank) { rank.silenced = !rank.ending().end; });
    } else if (now >= speak_by_ || (bad_ > 0 && nobody_left_can_speak())) {
      end_all([](Rank& rank) { rank.silenced = !rank.ending().end; });
    } else if (!listen(now, wanted, use)) {
      wait(now, how);
    }
    pass_on_progress(now, how);
    if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& it) { return it.answered && !it.gone; })) return true;
  }
  next_progress_ = {};
  pass_on_progress(Clock::now(), how);
  return false;
}

// True if a worker sent something or has ended.
bool Gang::listen(Clock::time_point now, std::string_view wanted, const Use& use) {
  bool something = false;
  for (Rank& rank : ranks_) {
    for (int i = 0; i < kMessagesAtOnce && !rank.gone; ++i) {
      const std::optional<Heard> heard = rank.worker->heard();
      if (!heard) break;
      something = true;
      take(rank, *heard, wanted, use);
    }
    if (!rank.gone && now >= rank.exit_by) {
      rank.worker->kill();
      bury(rank);
      something = true;
    }
  }
  return something;
}

void Gang::take(Rank& rank, const Heard& heard, std::string_view wanted, const Use& use) {
  if (heard.state == Heard::State::message && take_message(rank, heard.text, wanted, use)) {
    if (!rank.ending().end || rank.exit_by != kNever) return;
    rank.exit_by = Clock::now() + kExitingTime;
    rank.worker->send({{"type", "bye"}});
    if (rank.ending().end->status != Status::ok) ended_badly(rank);
    return;
  }
  if (heard.state == Heard::State::broken) rank.ending().wire_error = heard.text;
  if (heard.state != Heard::State::gone) rank.worker->kill();
  bury(rank);
  const Ending& ending = rank.ending();
  if (!ending.wire_error.empty() || !ending.end || ending.end->status != Status::ok) ended_badly(rank);
}

// False if nothing more of this rank is to be read.
bool Gang::take_message(Rank& rank, const std::string& text, std::string_view wanted, const Use& use) {
  std::optional<worker::ProgressRecord> progress;
  try {
    if (!wanted.empty()) {
      require_bursts(*rank.worker);
      const Json message = parse_message(text);
      if (message.value("type", Json()) == wanted && !rank.answered) {
        use(static_cast<int>(&rank - ranks_.data()), message);
        rank.answered = true;
        return true;
      }
    }
    progress = rank.intake.take(text);
    const std::optional<worker::EndRecord>& end = rank.ending().end;
    if (end && end->status == Status::ok && !wanted.empty()) {
      throw Error(ErrorKind::comm, fmt::format("the worker ended its case where '{}' was asked", wanted));
    }
  } catch (const Error& error) {
    rank.ending().wire_error = error.what();
    return false;
  }
  if (progress && &rank == &ranks_.front()) progress_ = std::move(progress);
  return true;
}

void Gang::ended_badly(Rank& rank) {
  if (rank.bad) return;
  rank.bad = bad_++;
  speak_by_ = std::min(speak_by_, Clock::now() + kGrace);
}

void Gang::bury(Rank& rank) {
  rank.gone = true;
  rank.intake.bury(*rank.worker);
}

bool Gang::nobody_left_can_speak() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& it) { return it.gone || (!it.intake.ending.end && !it.worker->can_speak()); });
}

// The limit runs from the stop on. Others begin to wait for a stopped rank when they come to need it, which on a busy
// machine may be long after, and what they then say of it is a guess from its silence; this is not.
void Gang::look_for_stopped(Clock::time_point now) {
  if (now - looked_ < kTick) return;
  const std::chrono::nanoseconds since = std::min<std::chrono::nanoseconds>(now - looked_, kLongestLook);
  looked_ = now;
  for (Rank& rank : ranks_) {
    const bool stopped = !rank.gone && !rank.ending().end && rank.worker->is_stopped();
    rank.stopped_for = stopped ? rank.stopped_for + since : std::chrono::nanoseconds{};
    rank.overdue = rank.stopped_for > limit_;
  }
}

bool Gang::one_is_stopped_for_too_long() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& it) { return !it.gone && it.overdue; });
}

// All remaining ranks are killed before any is waited for: a rank without its partners might take long to end.
void Gang::end_all(const std::function<void(Rank&)>& mark) {
  for (Rank& rank : ranks_) {
    const bool stopped = !rank.gone && !rank.ending().end && rank.worker->is_stopped();
    // Since the last look, at least.
    rank.stopped_for = stopped ? std::max<std::chrono::nanoseconds>(rank.stopped_for, 1ns) : std::chrono::nanoseconds{};
  }
  for (Rank& rank : ranks_) {
    if (!rank.gone) rank.worker->kill();
  }
  for (Rank& rank : ranks_) {
    if (rank.gone) continue;
    bury(rank);
    // After its process was reaped: a last message may have been in the pipe.
    if (rank.ending().end && rank.ending().end->status != Status::ok) ended_badly(rank);
    mark(rank);
  }
}

void Gang::wait(Clock::time_point now, const Hearing& how) {
  auto wake = std::min({how.deadline, speak_by_, how.watch.next_heartbeat(), now + kTick});
  if (progress_) wake = std::min(wake, next_progress_);
  std::vector<struct pollfd> on{{how.watch.interruption().fd(), POLLIN, 0}};
  for (const Rank& rank : ranks_) {
    if (rank.gone) continue;
    wake = std::min(wake, rank.exit_by);
    on.push_back({rank.worker->output(), POLLIN, 0});
    on.push_back({rank.worker->error_output(), POLLIN, 0});
  }
  const auto wait_ms = std::max<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(wake - now).count(), 0);
  ::poll(on.data(), on.size(), static_cast<int>(wait_ms));
}

void Gang::pass_on_progress(Clock::time_point now, const Hearing& how) {
  if (!progress_ || now < next_progress_) return;
  if (how.progress) how.progress(std::move(*progress_));
  progress_.reset();
  next_progress_ = now + kProgressPause;
}

}  // namespace syslab::runner
