#include "runner/ranks.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "runner/intake.hpp"
#include "runner/ranks_verdict.hpp"
#include "runner/rendezvous.hpp"
#include "runner/verdict.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

constexpr auto kExitingTime = 2s;      // from its last word to its exit
constexpr auto kProgressPause = 50ms;  // between two progress records that are passed on
constexpr auto kTick = 250ms;         // a worker that dies while a child of it holds its pipe open is noticed at a tick
constexpr int kMessagesAtOnce = 256;  // of one rank, before the others have their turn
constexpr auto kNever = Clock::time_point::max();

// Ranks that would each take all processors would mostly wait for one another.
std::map<std::string, std::string> environment_of(const RunOptions& options, int ranks) {
  std::map<std::string, std::string> environment = options.environment;
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    environment.emplace("OMP_NUM_THREADS", std::to_string(std::max(1U, cores / static_cast<unsigned>(ranks))));
  }
  return environment;
}

struct Rank {
  std::unique_ptr<WorkerProcess> worker;
  Intake intake;
  Clock::time_point exit_by = kNever;  // once it has ended its case
  bool gone = false;                   // buried, or never there
  std::optional<int> bad;
  bool silenced = false;

  Ending& ending() { return intake.ending; }
};

class Gang {
 public:
  Gang(const LaunchOrder& order, const RunOptions& options, const Observer& observer, const Interruption& interruption)
      : order_(order), observer_(observer), interruption_(interruption), ranks_(order.request.world_size) {
    for (Rank& rank : ranks_) rank.ending().one_of_ranks = true;
    start(options);
  }

  std::vector<RankEnding> hear() {
    Watch watch(interruption_, [this] {
      if (observer_.heartbeat) observer_.heartbeat(order_.planned);
    });
    while (someone_is_there()) {
      const auto now = Clock::now();
      watch.tick(now);
      if (interruption_.signal() != 0) {
        end_all([this](Rank& rank) { rank.ending().interrupted = interruption_.signal(); });
      } else if (now >= order_.deadline) {
        end_all([](Rank& rank) { rank.ending().timed_out = !rank.ending().end; });
      } else if (now >= speak_by_) {
        end_all([](Rank& rank) { rank.silenced = !rank.ending().end; });
      } else if (!listen(now)) {
        wait(now, watch);
      }
      pass_on_progress(now);
    }
    next_progress_ = {};
    pass_on_progress(Clock::now());
    std::vector<RankEnding> endings;
    for (Rank& rank : ranks_) endings.push_back({std::move(rank.ending()), rank.bad, rank.silenced});
    return endings;
  }

 private:
  // All are started, or none is left.
  void start(const RunOptions& options) {
    const WorkerProcess::Command command{options.worker_command, environment_of(options, order_.request.world_size)};
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      worker::CaseRequest request = order_.request;
      request.rank = static_cast<int>(i);
      if (request.device == "cuda") request.device_index = request.rank;
      request.rendezvous = rendezvous_.text();
      try {
        ranks_[i].worker = std::make_unique<WorkerProcess>(command);
        ranks_[i].worker->send(worker::to_json(request));
        ranks_[i].worker->send({{"type", "bye"}});
      } catch (const Error& error) {
        if (!WorkerProcess::could_not_start(error)) throw;
        ranks_[i].ending().not_started = error.what();
        ended_badly(ranks_[i]);
        for (std::size_t later = i; later < ranks_.size(); ++later) {
          ranks_[later].gone = true;
          if (later > i) ranks_[later].ending().not_started = fmt::format("rank {} could not be started", i);
        }
        end_all([](Rank& rank) { rank.silenced = true; });
        return;
      }
    }
  }

  bool someone_is_there() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& it) { return !it.gone; });
  }

  // True when there was something to hear, or somebody to bury.
  bool listen(Clock::time_point now) {
    bool something = false;
    for (Rank& rank : ranks_) {
      for (int i = 0; i < kMessagesAtOnce && !rank.gone; ++i) {
        std::optional<Heard> heard = rank.worker->heard();
        if (!heard) break;
        something = true;
        take(rank, *heard);
      }
      if (!rank.gone && now >= rank.exit_by) {
        rank.worker->kill();
        bury(rank);
        something = true;
      }
    }
    return something;
  }

  void take(Rank& rank, const Heard& heard) {
    std::optional<worker::ProgressRecord> progress;
    if (heard.state == Heard::State::message && rank.intake.accept(heard.text, progress)) {
      if (progress && &rank == &ranks_.front()) progress_ = std::move(progress);
      if (!rank.ending().end || rank.exit_by != kNever) return;
      rank.exit_by = Clock::now() + kExitingTime;
      if (rank.ending().end->status != worker::Status::ok) ended_badly(rank);
      return;
    }
    if (heard.state == Heard::State::broken) rank.ending().protocol_error = heard.text;
    if (heard.state != Heard::State::gone) rank.worker->kill();
    bury(rank);
    const Ending& ending = rank.ending();
    if (!ending.protocol_error.empty() || !ending.end || ending.end->status != worker::Status::ok) ended_badly(rank);
  }

  void ended_badly(Rank& rank) {
    if (rank.bad) return;
    rank.bad = bad_++;
    speak_by_ = std::min(speak_by_, Clock::now() + kGrace);
  }

  void bury(Rank& rank) {
    rank.gone = true;
    rank.intake.bury(*rank.worker);
  }

  // All that are left are killed before any is waited for: what they do without each other would take time.
  template <typename Mark>
  void end_all(Mark mark) {
    for (Rank& rank : ranks_) {
      if (!rank.gone) rank.worker->kill();
    }
    for (Rank& rank : ranks_) {
      if (rank.gone) continue;
      bury(rank);
      mark(rank);  // after its burial: a last word may have been on its way
    }
  }

  void wait(Clock::time_point now, const Watch& watch) {
    auto wake = std::min({order_.deadline, speak_by_, watch.next_heartbeat(), now + kTick});
    if (progress_) wake = std::min(wake, next_progress_);
    std::vector<struct pollfd> on{{interruption_.fd(), POLLIN, 0}};
    for (const Rank& rank : ranks_) {
      if (rank.gone) continue;
      wake = std::min(wake, rank.exit_by);
      on.push_back({rank.worker->output(), POLLIN, 0});
      on.push_back({rank.worker->error_output(), POLLIN, 0});
    }
    const auto wait_ms = std::max<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(wake - now).count(), 0);
    ::poll(on.data(), on.size(), static_cast<int>(wait_ms));
  }

  void pass_on_progress(Clock::time_point now) {
    if (!progress_ || now < next_progress_) return;
    if (!order_.progress_of.empty()) progress_->text = order_.progress_of + ", " + progress_->text;
    if (observer_.progress) observer_.progress(order_.planned, *progress_);
    progress_.reset();
    next_progress_ = now + kProgressPause;
  }

  const LaunchOrder& order_;
  const Observer& observer_;
  const Interruption& interruption_;
  const Rendezvous rendezvous_;  // outlives the ranks
  std::vector<Rank> ranks_;
  Clock::time_point speak_by_ = kNever;             // once one has ended badly
  std::optional<worker::ProgressRecord> progress_;  // of rank 0, not passed on yet
  Clock::time_point next_progress_{};
  int bad_ = 0;
};

}  // namespace

Launch run_ranks(const LaunchOrder& order, const RunOptions& options, Workers& workers, const Observer& observer,
                 const Interruption& interruption) {
  workers.retire();  // it would hold memory of a GPU that a rank is about to have
  const OomWitness witness;
  std::vector<RankEnding> ranks = Gang(order, options, observer, interruption).hear();
  return judge_ranks(ranks, options, witness);
}

}  // namespace syslab::runner
