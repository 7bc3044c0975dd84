#include "stats/timing_warning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/text/format_seconds.hpp"
#include "core/text/printable.hpp"

namespace syslab::stats {
namespace {

constexpr std::array<std::pair<WarningCode, std::string_view>, 12> kCodes{
    {{WarningCode::arguments_repeat, "arguments_repeat"},
     {WarningCode::argument_constant, "argument_constant"},
     {WarningCode::rows_equal, "rows_equal"},
     {WarningCode::reference_shares_code, "reference_shares_code"},
     {WarningCode::library_patched, "library_patched"},
     {WarningCode::forward_untimed, "forward_untimed"},
     {WarningCode::results_copied, "results_copied"},
     {WarningCode::elements_unjudged, "elements_unjudged"},
     {WarningCode::bound_exceeds_values, "bound_exceeds_values"},
     {WarningCode::ties_differ, "ties_differ"},
     {WarningCode::terms_exceed_inputs, "terms_exceed_inputs"},
     {WarningCode::left_running, "left_running"}}};

constexpr std::array<std::pair<WarningCode, std::string_view>, kCodes.size()> kSentences{{
    {WarningCode::arguments_repeat,
     "{part} of argument '{about}' repeats from call to call: a side that keeps results by content would look faster."},
    {WarningCode::argument_constant,
     "Argument '{about}' is the same in every call: a side that keeps what it computes from it alone would look "
     "faster."},
    {WarningCode::rows_equal,
     "{part} of the rows of argument '{about}' are equal or constant: a side that computes one row and copies it would "
     "look faster."},
    {WarningCode::reference_shares_code,
     "The reference loads {about}, which the function is made of: a change of that file changes what is expected."},
    {WarningCode::library_patched,
     "{about} is replaced by a file that the reference loads: what is expected follows that file."},
    {WarningCode::forward_untimed,
     "The forward call of {side}, which is not timed, takes {seconds} more than the other side's: work may have moved "
     "into it."},
    {WarningCode::results_copied,
     "Handing over calls and copying their results take at least {part} of the time of {side}: the true difference may "
     "be larger."},
    {WarningCode::elements_unjudged,
     "{part} of the elements of '{about}' of {side} are not judged: they differ from the reference by more than "
     "rounding "
     "explains, and jumps, sums that cancel or large neighbours widen their bounds."},
    {WarningCode::bound_exceeds_values,
     "{part} of the elements of '{about}' that are not zero have a bound at least as large as their value, by what the "
     "case declares: zeros in their place would pass."},
    {WarningCode::ties_differ,
     "{part} of the elements of '{about}' of {side} are other integers than the reference's, and count as right "
     "because they tie "
     "with those: if only the reference's are right, give the case \"atol\": 1e-3."},
    {WarningCode::terms_exceed_inputs,
     "The case declares sums of {count} terms, and its arguments have {about} elements: the bound grows with the "
     "square "
     "root of the terms."},
    {WarningCode::left_running,
     "'{about}' ended while processes of it still ran (up to {count} in a call): syslab ended them, and no time "
     "includes "
     "their work."},
}};

std::optional<TimingWarning> warning_from(const Json& json) {
  if (!json.is_object() || !json.contains("code") || !json["code"].is_string()) return std::nullopt;
  const auto code = json["code"].get<std::string>();
  const auto known = std::ranges::find(kCodes, code, &std::pair<WarningCode, std::string_view>::second);
  if (known == kCodes.end()) return std::nullopt;
  TimingWarning warning{.code = known->first};
  const auto text = [&](const char* name) {
    return json.contains(name) && json[name].is_string() ? printable(json[name].get<std::string>()) : std::string();
  };
  warning.side = text("side");
  warning.about = text("about");
  if (json.contains("number") && json["number"].is_number()) warning.number = json["number"].get<double>();
  return warning;
}

}  // namespace

std::string_view to_string(TimingReason reason) {
  return reason == TimingReason::under_resolution ? "under_resolution" : "none";
}

std::string_view to_string(WarningCode code) {
  return std::ranges::find(kCodes, code, &std::pair<WarningCode, std::string_view>::first)->second;
}

Json to_json(const std::vector<TimingWarning>& warnings) {
  Json list = Json::array();
  for (const TimingWarning& one : warnings) {
    Json json{{"code", to_string(one.code)}};
    if (!one.side.empty()) json["side"] = one.side;
    if (!one.about.empty()) json["about"] = one.about;
    if (one.number != 0) json["number"] = one.number;
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<TimingWarning> warnings_from_json(const Json& json) {
  std::vector<TimingWarning> warnings;
  if (!json.is_array()) return warnings;
  for (const Json& each : json) {
    if (std::optional<TimingWarning> warning = warning_from(each)) warnings.push_back(std::move(*warning));
  }
  return warnings;
}

std::string percent_of(double part) { return fmt::format("{:.{}f} %", 100 * part, part < 0.1 ? 1 : 0); }

std::string sentence(const TimingWarning& it) {
  const auto found = std::ranges::find(kSentences, it.code, &std::pair<WarningCode, std::string_view>::first);
  if (found == kSentences.end()) return {};
  return fmt::format(fmt::runtime(found->second), fmt::arg("part", percent_of(it.number)), fmt::arg("about", it.about),
                     fmt::arg("side", it.side), fmt::arg("count", fmt::format("{:.0f}", it.number)),
                     fmt::arg("seconds", format_seconds(it.number)));
}

void add_warnings(std::vector<TimingWarning>& all, const std::vector<TimingWarning>& more) {
  for (const TimingWarning& one : more) {
    const auto known = std::ranges::find_if(all, [&](const TimingWarning& it) {
      return it.code == one.code && it.side == one.side && it.about == one.about;
    });
    if (known == all.end()) {
      all.push_back(one);
    } else {
      known->number = std::max(known->number, one.number);
    }
  }
}

}  // namespace syslab::stats
