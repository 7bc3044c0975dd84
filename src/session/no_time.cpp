#include "session/no_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/text/format_seconds.hpp"
#include "core/text/json_text.hpp"
#include "measure/resolution.hpp"
#include "session/pooled_resolution.hpp"

namespace syslab::cli {
namespace {

double number(const Json& json, const char* name) {
  const Json value = json.value(name, Json());
  return value.is_number() ? value.get<double>() : 0;
}

using measure::Resolution;

bool by_results(const NoTime& it) { return it.with_results > 2 * it.handover; }

std::string expected(const NoTime& it, const std::string& of) {
  return fmt::format("expected at most a tenth{}{}", of,
                     by_results(it) ? " for the hand-over, and half with the copying" : "");
}

constexpr const char* kMoreWork = "more work in a call (a loop inside the function, larger inputs)";

std::string busy_in_words(const NoTime& it) {
  const double high = by_results(it) ? it.with_results : it.handover;
  const double least = by_results(it) ? it.least_with_results : it.least;
  return fmt::format("{}handing over a call{} took up to {}, and {} at the least; {}; try: a quiet machine, or {}",
                     it.launch > 0 ? fmt::format("in launch {} ", it.launch) : "",
                     by_results(it) ? " and copying its results" : "", format_seconds(high), format_seconds(least),
                     expected(it, fmt::format(" of the {} measured", format_seconds(it.seconds))), kMoreWork);
}

}  // namespace

std::optional<NoTime> no_time(const std::string& facts_json) {
  const Json facts = json_or_discarded(facts_json);
  if (!facts.is_object() || !facts.contains("no_time")) return std::nullopt;
  if (facts.value("launches", Json()).is_array()) {  // of several launches, each of which has its own numbers
    PooledResolution all;
    all.take(facts_json);
    if (std::optional<NoTime> why = all.no_time()) return why;
  }
  const Json handover = facts.value("handover", Json::object());
  NoTime it{.reason = stats::TimingReason::under_resolution};
  if (!handover.is_object()) return it;
  it.handover = number(handover, "high");
  it.with_results = number(handover, "with_results");
  it.least = number(handover, "least");
  it.least_with_results = number(handover, "least_with_results");
  if (const double share = number(handover, "share"); share > 0) it.seconds = it.handover / share;
  return it;
}

std::vector<stats::TimingWarning> timing_warnings(const std::string& facts_json) {
  const Json facts = json_or_discarded(facts_json);
  return facts.is_object() ? stats::warnings_from_json(facts.value("warnings", Json()))
                           : std::vector<stats::TimingWarning>();
}

std::vector<stats::TimingWarning> of_results(const std::vector<stats::TimingWarning>& warnings) {
  std::vector<stats::TimingWarning> found;
  std::ranges::copy_if(warnings, std::back_inserter(found), [](const stats::TimingWarning& one) {
    return one.code == stats::WarningCode::elements_unjudged || one.code == stats::WarningCode::bound_exceeds_values ||
           one.code == stats::WarningCode::ties_differ || one.code == stats::WarningCode::terms_exceed_inputs;
  });
  return found;
}

bool leave_unjudged(const std::vector<stats::TimingWarning>& warnings) {
  return std::ranges::count(warnings, stats::WarningCode::elements_unjudged, &stats::TimingWarning::code) > 0;
}

bool was_busy(const NoTime& it) {
  constexpr double kSeveral = 5;
  const bool would_do = it.least <= Resolution::kMostHandover * it.seconds &&
                        it.least_with_results <= Resolution::kMostOfLab * it.seconds;
  const bool scatters = it.handover > kSeveral * it.least ||
                        (it.least_with_results > 0 && it.with_results > kSeveral * it.least_with_results);
  return it.least > 0 && would_do && scatters;
}

std::string verdict_of(const NoTime& it) {
  return was_busy(it) ? fmt::format("has no time: {}", kBusy) : "is too short to time";
}

std::string in_words(const NoTime& it) {
  if (was_busy(it)) return busy_in_words(it);
  return fmt::format("handing over a call{} takes up to {}, and a call with it {}; {}; try: {} or a quiet machine",
                     by_results(it) ? " and copying its results" : "",
                     format_seconds(by_results(it) ? it.with_results : it.handover), format_seconds(it.seconds),
                     expected(it, ""), kMoreWork);
}

}  // namespace syslab::cli
