#include "grade/timing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "contract/status.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "grade/record.hpp"
#include "stats/distributions.hpp"

namespace syslab::grade {
namespace {

// Texts of ours: records of other builds may have others, which quote the submission.
constexpr const char *kWrong = "it is wrong where it was to be timed", *kNotTimed = "it could not be timed";

std::optional<double> number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

bool is_wrong(const Json& entry) { return entry.is_object() && entry.value("wrong", Json()) == Json(true); }

const Json* entry_of(const Item& item, const Json& record) {
  const auto timings = record.find("timings");
  if (timings == record.end() || !timings->is_object()) return nullptr;
  const auto found = timings->find(timing_name(item));
  return found != timings->end() && found->is_object() ? &*found : nullptr;
}

}  // namespace

double most_doubt(int launches) {
  const double n = std::max(2, launches);
  return std::exp(stats::student_t_quantile(0.975, n - 1) * kScatter / std::sqrt(n));
}

double Timing::least() const { return std::max(low, ratio / most_doubt(launches)); }

std::string timing_name(const Item& item) {
  return fmt::format("{} of {} beside {}{}{}, {} launches", item.experiment, item.function, item.reference,
                     item.at.empty() ? "" : " at ", fmt::join(item.at, " "), item.launches);
}

Json read_comparison(const std::string& output) {
  Json found, error;
  for (const std::string& line : split(output, '\n')) {
    Json one = json_or_discarded(line);
    if (!one.is_object()) continue;
    if (text_field(one, "type") == "comparison")
      found = std::move(one);
    else if (one.contains("error") && one["error"].is_object())
      error = one["error"];
  }
  if (!found.is_object()) {
    return not_timed(error.is_object() ? first_line(text_field(error, "message"))
                                       : "the comparison ended without an answer");
  }
  const auto ratio = number_of(found, "log_ratio"), low = number_of(found, "low"), high = number_of(found, "high");
  if (!ratio || !low || !high) {
    // A reference that fails as well says that the machine is at fault.
    const bool b_alone = !status_of(text_field(found, "failed_a"));
    if (b_alone && status_of(text_field(found, "failed_b")) == Status::check_failed) {
      return {{"wrong", true}, {"why", kWrong}, {"told", first_line(text_field(found, "detail_b"))}};
    }
    return not_timed(first_line(text_field(found, "reason")));
  }
  return {{"ratio", std::exp(*ratio)},
          {"low", std::exp(*low)},
          {"high", std::exp(*high)},
          {"seconds", number_of(found, "seconds_b").value_or(0)},
          {"reference_seconds", number_of(found, "seconds_a").value_or(0)}};
}

Json not_timed(const std::string& told) { return {{"why", kNotTimed}, {"told", told}}; }

std::optional<Timing> timing_of(const Item& item, const Json& record) {
  const Json* const entry = entry_of(item, record);
  if (entry == nullptr) return std::nullopt;
  const auto ratio = number_of(*entry, "ratio"), low = number_of(*entry, "low"), high = number_of(*entry, "high");
  if (!ratio || !low || !high) return std::nullopt;
  return Timing{*ratio,
                *low,
                *high,
                number_of(*entry, "seconds").value_or(0),
                number_of(*entry, "reference_seconds").value_or(0),
                item.launches};
}

bool is_settled(const Json& entry) { return entry.contains("ratio") || is_wrong(entry); }

ItemScore score_timing(const Item& item, const Json& record) {
  ItemScore score{.item = &item};
  const std::optional<Timing> timing = timing_of(item, record);
  if (!timing) {
    const Json* const entry = entry_of(item, record);
    score.why = entry == nullptr ? "was not timed" : is_wrong(*entry) ? kWrong : kNotTimed;
    if (entry != nullptr) score.told = text_field(*entry, "told");
    score.failed = entry != nullptr && is_wrong(*entry);
    score.open = !score.failed;
    return score;
  }
  const auto kept = std::ranges::count_if(item.within, [&](double ratio) { return timing->least() <= ratio; });
  if (!item.within.empty()) {
    score.earned = hundredths(item.points * static_cast<double>(kept) / static_cast<double>(item.within.size()));
  }
  score.why = to_string(*timing, item);
  if (!item.within.empty()) score.why += fmt::format("; points for at most {:g} times", fmt::join(item.within, ", "));
  return score;
}

std::string to_string(const Timing& timing, const Item& item) {
  return fmt::format("{:.3g} times the time of {} ({:.3g} … {:.3g}){}{}", timing.ratio, item.reference, timing.low,
                     timing.high, item.at.empty() ? "" : " at ", fmt::join(item.at, " "));
}

}  // namespace syslab::grade
