#include "runner/paired/side_by_side.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "runner/attempt.hpp"
#include "runner/budget.hpp"
#include "runner/law_shares.hpp"
#include "runner/request.hpp"
#include "runner/workers.hpp"

namespace syslab::runner {
namespace {

// Ends what another job runs when one has failed to be told.
struct Abandoned {};

RunOptions with_a_share(RunOptions options) {
  if (std::getenv("OMP_NUM_THREADS") == nullptr && !options.environment.contains("OMP_NUM_THREADS")) {
    const unsigned share = std::thread::hardware_concurrency() / static_cast<unsigned>(options.jobs);
    options.environment["OMP_NUM_THREADS"] = std::to_string(std::max(1U, share));
  }
  return options;
}

class SideBySide {
 public:
  SideBySide(const plan::Plan& plan, const RunOptions& options, const Observer& observer,
             const Interruption& interruption)
      : plan_(plan),
        options_(with_a_share(options)),
        observer_(observer),
        interruption_(interruption),
        budget_(options.budget),
        ended_(plan.cases.size()),
        shares_(plan, options_) {}

  bool run() {
    std::vector<std::thread> jobs;
    const auto count = std::min(static_cast<std::size_t>(options_.jobs), plan_.cases.size());
    for (std::size_t i = 0; i < count; ++i) jobs.emplace_back([this] { work(); });
    for (std::thread& job : jobs) job.join();
    if (failure_) std::rethrow_exception(failure_);
    return all_;
  }

 private:
  // What became of a case that is not told yet.
  struct Ended {
    std::optional<AttemptResult> result;
    std::string left_out;
  };

  void work() {
    RunOptions own = options_;
    Workers workers(own);
    const Observer guarded = guarded_observer();
    try {
      while (const std::optional<std::size_t> next = begin_next(own)) {
        const plan::PlannedCase& planned = plan_.cases[*next];
        AttemptResult result = is_tried(planned)
                                   ? run_attempt(planned, request_for(planned, plan_.mine, own, own.reproduce), own,
                                                 workers, guarded, interruption_)
                                   : not_tried(planned);
        finish(*next, std::move(result));
      }
    } catch (const Abandoned&) {
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  // The next case that is to be run; those that are left out on the way are noted.
  std::optional<std::size_t> begin_next(RunOptions& own) {
    const std::lock_guard lock(mutex_);
    while (next_ < plan_.cases.size() && !failure_ && !aborted_ && interruption_.signal() == 0) {
      const std::size_t index = next_++;
      const plan::PlannedCase& planned = plan_.cases[index];
      shares_.give(planned, own);
      std::string why = stopped_;
      if (why.empty() && is_tried(planned)) why = budget_.refusal(planned);
      if (why.empty()) return index;
      all_ = false;
      ended_[index].left_out = std::move(why);
      tell();
    }
    if (interruption_.signal() != 0 || aborted_) all_ = false;
    return std::nullopt;
  }

  void finish(std::size_t index, AttemptResult result) {
    const std::lock_guard lock(mutex_);
    shares_.took(result);
    if (result.status == Status::aborted) aborted_ = true, all_ = false;
    if (options_.stop_at_failure && is_failure(result.status)) stopped_ = "stopped at the first failure";
    ended_[index].result = std::move(result);
    if (aborted_) return tell_all();
    tell();
  }

  // In the order of the plan, as far as it has come.
  void tell() {
    while (told_ < ended_.size() && (ended_[told_].result || !ended_[told_].left_out.empty())) tell_one(told_++);
  }
  // What stands behind a gap, too: nobody fills it any more.
  void tell_all() {
    for (std::size_t i = told_; i < ended_.size(); ++i) {
      if (ended_[i].result || !ended_[i].left_out.empty()) tell_one(i);
    }
  }
  void tell_one(std::size_t index) {
    Ended ended = std::exchange(ended_[index], {});
    if (ended.result) {
      if (observer_.finished) observer_.finished(std::move(*ended.result));
    } else if (observer_.left_out) {
      observer_.left_out(plan_.cases[index], ended.left_out);
    }
  }

  Observer guarded_observer() {
    const auto guarded = [this](const auto& callback) {
      const std::lock_guard lock(mutex_);
      if (failure_) throw Abandoned();
      callback();
    };
    Observer made;
    made.started = [this, guarded](const plan::PlannedCase& planned) {
      guarded([&] {
        if (observer_.started) observer_.started(planned);
      });
    };
    made.progress = [this, guarded](const plan::PlannedCase& planned, const worker::ProgressRecord& record) {
      guarded([&] {
        if (observer_.progress) observer_.progress(planned, record);
      });
    };
    made.heartbeat = [this, guarded](const plan::PlannedCase& planned) {
      guarded([&] {
        if (observer_.heartbeat) observer_.heartbeat(planned);
      });
    };
    return made;
  }

  const plan::Plan& plan_;
  const RunOptions options_;
  const Observer& observer_;
  const Interruption& interruption_;
  const Budget budget_;

  std::mutex mutex_;  // of all below, and of the observer
  std::vector<Ended> ended_;
  LawShares shares_;
  std::size_t next_ = 0, told_ = 0;
  std::string stopped_;
  bool all_ = true, aborted_ = false;
  std::exception_ptr failure_;
};

}  // namespace

bool run_side_by_side(const plan::Plan& plan, const RunOptions& options, const Observer& observer,
                      const Interruption& interruption) {
  return SideBySide(plan, options, observer, interruption).run();
}

}  // namespace syslab::runner
