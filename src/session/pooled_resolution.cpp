#include "session/pooled_resolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "measure/resolution.hpp"

namespace syslab::cli {
namespace {

using measure::Resolution;

constexpr double kHopeless = 2;
constexpr int kTold = 3;  // launches: in a busy one the shortest hand-over may have waited, too

// Of the fact "handover"; 0: no handing over is in the time, or an older build did not tell it.
double number_of(const Json& facts, const char* name) {
  const Json handover = facts.is_object() ? facts.value("handover", Json()) : Json();
  const Json number = handover.is_object() ? handover.value(name, Json()) : Json();
  return number.is_number() ? number.get<double>() : 0;
}

void keep_shorter(double& least, double seconds) {
  if (seconds > 0 && (least == 0 || seconds < least)) least = seconds;
}

}  // namespace

void PooledResolution::take(const std::string& facts_json) {
  const Json facts = json_or_discarded(facts_json);
  if (facts.is_object() && facts.value("launches", Json()).is_array()) {  // an attempt of several
    for (const Json& launch : facts["launches"]) take(json_text(launch));
    return;
  }
  ++launches_;
  const std::optional<NoTime> why = cli::no_time(facts_json);
  if (why) ++alone_;
  const double measured_share = number_of(facts, "share");
  if (measured_share > 0) keep_shorter(shortest_call_, number_of(facts, "high") / measured_share);
  keep_shorter(least_, number_of(facts, "least"));
  keep_shorter(least_with_results_, number_of(facts, "least_with_results"));
  // One that is refused without numbers is wholly so.
  const double share = why && why->seconds == 0 ? 1 : measured_share;
  const double with_results = std::max(share, number_of(facts, "share_with_results"));
  shares_ += share;
  shares_with_results_ += with_results;
  if (why && with_results > largest_) {
    largest_ = with_results;
    worst_ = why;
    worst_->launch = launches_;
  }
}

double PooledResolution::mean_share() const { return launches_ == 0 ? 0 : shares_ / launches_; }

bool PooledResolution::is_beyond(double factor) const {
  return worst_ && (shares_ > factor * Resolution::kMostHandover * launches_ ||
                    shares_with_results_ > std::min(factor * Resolution::kMostOfLab, 0.9) * launches_);
}

std::optional<NoTime> PooledResolution::no_time() const {
  if (!is_beyond(1)) return std::nullopt;
  NoTime why = *worst_;
  if (why.least > 0) why.least = least_;
  if (why.least_with_results > 0) why.least_with_results = least_with_results_;
  if (launches_ == 1) why.launch = 0;
  return why;
}

bool PooledResolution::may_do_on_a_quiet_machine() const {
  if (least_ == 0 || shortest_call_ == 0) return false;
  if (launches_ < kTold) return true;
  return least_ <= Resolution::kMostHandover * shortest_call_ &&
         least_with_results_ <= Resolution::kMostOfLab * shortest_call_;
}

bool PooledResolution::is_hopeless() const { return is_beyond(kHopeless) && !may_do_on_a_quiet_machine(); }

std::string in_words(const PooledResolution& it, const std::string& side) {
  if (it.too_short_alone() == 0) return {};
  return fmt::format(
      "{} of {} launches of {} would have no time alone; all of them count, and {:.2g} % of its time is the "
      "lab's own.",
      it.too_short_alone(), it.launches(), side, 100 * it.mean_share());
}

}  // namespace syslab::cli
