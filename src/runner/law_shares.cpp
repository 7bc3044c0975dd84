#include "runner/law_shares.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/text/json_text.hpp"

namespace syslab::runner {
namespace {

constexpr const char* kLawSeconds = "law_seconds";  // docs/worker-wire.md, "Records"

// Of an equal share: left to every law, however long those before it took to make what they found small.
constexpr int kLeastPart = 4;

}  // namespace

Nanoseconds law_time_of(Clock::time_point end, Clock::time_point now, std::int64_t laws_left) {
  return std::max(Nanoseconds(end - now) / std::max<std::int64_t>(laws_left, 1), Nanoseconds{});
}

LawShares::LawShares(const plan::Plan& plan, const RunSpec& spec)
    : spec_(spec),
      end_(Clock::now() + spec.until),
      laws_(std::ranges::count(plan.cases, plan::Task::law, &plan::PlannedCase::task)),
      left_(laws_),
      side_by_side_(std::clamp(spec.jobs, 1, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())))),
      not_spent_(spec.within * side_by_side_) {}

Nanoseconds LawShares::limit() const {
  const Nanoseconds least = spec_.within * side_by_side_ / std::max<std::int64_t>(laws_, 1) / kLeastPart;
  return std::max(least, not_spent_ / std::max<std::int64_t>(left_, 1));
}

void LawShares::give(const plan::PlannedCase& next, MeasureSpec& spec) {
  if (next.task != plan::Task::law) return;
  if (spec_.until.count() > 0) {
    spec.law_time = law_time_of(end_, Clock::now(), (left_ + spec_.jobs - 1) / spec_.jobs);
  }
  if (spec_.within.count() > 0) spec.law_limit = limit();
  --left_;
}

void LawShares::took(const AttemptResult& result) {
  if (spec_.within.count() == 0 || result.planned->task != plan::Task::law) return;
  const Json facts = parse_json(result.facts_json);
  const double seconds = facts.value(kLawSeconds, Seconds(result.wall).count());
  not_spent_ = std::max(Nanoseconds{}, not_spent_ - std::chrono::duration_cast<Nanoseconds>(Seconds(seconds)));
}

}  // namespace syslab::runner
