#include "stats/timing_warning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/format_seconds.hpp"
#include "core/printable.hpp"

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
  const auto percent = [&] { return fmt::format("{:.0f} %", 100 * it.number); };
  switch (it.code) {
    case WarningCode::arguments_repeat:
      return fmt::format(
          "{} of argument '{}' repeats from call to call: a side that keeps results by content would look faster.",
          percent(), it.about);
    case WarningCode::argument_constant:
      return fmt::format(
          "Argument '{}' is the same in every call: a side that keeps what it computes from it alone would look "
          "faster.",
          it.about);
    case WarningCode::rows_equal:
      return fmt::format(
          "{} of the rows of argument '{}' are equal or constant: a side that computes one row and copies it would "
          "look "
          "faster.",
          percent(), it.about);
    case WarningCode::reference_shares_code:
      return fmt::format(
          "The reference loads {}, which the function is made of: a change of that file changes what is expected.",
          it.about);
    case WarningCode::library_patched:
      return fmt::format("{} is replaced by a file that the reference loads: what is expected follows that file.",
                         it.about);
    case WarningCode::forward_untimed:
      return fmt::format(
          "The forward call of {}, which is not timed, takes {} more than the other side's: work may have moved into "
          "it.",
          it.side, format_seconds(it.number));
    case WarningCode::results_copied:
      return fmt::format(
          "Handing over calls and copying their results take at least {} of the time of {}: the true difference may be "
          "larger.",
          percent(), it.side);
    case WarningCode::elements_unjudged:
      return fmt::format(
          "{} of the elements of '{}' of {} are not judged: they differ from the reference by more than rounding "
          "explains, and jumps, sums that cancel or large neighbours widen their bounds.",
          percent_of(it.number), it.about, it.side);
    case WarningCode::bound_exceeds_values:
      return fmt::format(
          "{} of the elements of '{}' that are not zero have a bound at least as large as their value, by what the "
          "case "
          "declares: zeros in their place would pass.",
          percent_of(it.number), it.about);
    case WarningCode::ties_differ:
      return fmt::format(
          "{} of the elements of '{}' are other integers than the reference's, and count as right because they tie "
          "with "
          "those: if only the reference's are right, give the case \"atol\": 1e-3.",
          percent_of(it.number), it.about);
    case WarningCode::terms_exceed_inputs:
      return fmt::format(
          "The case declares sums of {:.0f} terms, and its arguments have {} elements: the bound grows with the square "
          "root of the terms.",
          it.number, it.about);
    case WarningCode::left_running:
      return fmt::format(
          "'{}' ended while processes of it still ran (up to {:.0f} in a call): syslab ended them, and no "
          "time includes their work.",
          it.about, it.number);
  }
  return {};
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
