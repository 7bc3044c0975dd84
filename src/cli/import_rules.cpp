#include "cli/import_rules.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text/text.hpp"
#include "core/text/time_unit.hpp"
#include "core/text/units.hpp"

namespace syslab::cli {
namespace {

using namespace std::chrono;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::usage, why); }

// The digits at `at`, as a number; nothing if one of them is not a digit.
std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  const char* begin = text.data() + at;
  const bool all =
      at + count <= text.size() && std::all_of(begin, begin + count, [](char c) { return c >= '0' && c <= '9'; });
  if (!all) return std::nullopt;
  std::from_chars(begin, begin + count, value);
  return value;
}

// "2026-05-01T12:34:56" and then ".789Z", ".789123456Z" or "Z".
std::optional<UtcTime> parse(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size() || text.back() != 'Z') return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != '0' && text[i] != kForm[i]) return std::nullopt;
  }
  const auto year_of = digits(text, 0, 4), month_of = digits(text, 5, 2), day_of = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2), minute = digits(text, 14, 2), second = digits(text, 17, 2);
  if (!year_of || !month_of || !day_of || !hour || !minute || !second) return std::nullopt;
  const year_month_day date(year(*year_of), month(static_cast<unsigned>(*month_of)),
                            day(static_cast<unsigned>(*day_of)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  std::string fraction;
  if (text.size() > kForm.size() + 1) {
    fraction = text.substr(kForm.size() + 1, text.size() - kForm.size() - 2);
    if (text[kForm.size()] != '.' || fraction.empty() || fraction.size() > 9) return std::nullopt;
  }
  fraction.resize(std::max<std::size_t>(fraction.size(), 3), '0');
  const auto thousandths = digits(fraction, 0, 3);
  if (!thousandths || !digits(fraction, 3, fraction.size() - 3)) return std::nullopt;
  return sys_days(date) + hours(*hour) + minutes(*minute) + seconds(*second) + milliseconds(*thousandths);
}

void check_rank(int rank, int world_size) {
  if (rank >= world_size) {
    refuse(fmt::format("rank {} of a case whose 'world_size' is {}; ranks count from 0", rank, world_size));
  }
}

// A metric or series with a declared name must have the declared unit: tables do not convert.
void check_unit(const registry::Experiment& experiment, const std::string& name, const std::string& unit) {
  for (const registry::Metric& metric : experiment.metrics) {
    if (metric.name != name || metric.unit == unit) continue;
    refuse(fmt::format("'{}' of {} is in '{}', found '{}'; convert it", name, experiment.id, metric.unit, unit));
  }
}

void check_metric(const worker::MetricRecord& metric, std::span<const double> samples) {
  const auto count = static_cast<std::int64_t>(samples.size());
  if (metric.n && *metric.n != count) {
    refuse(fmt::format("'{}' says that it is of {} samples, and the case has {}; expected n = {}", metric.name,
                       *metric.n, counted(count, "sample"), count));
  }
  if (!metric.value) return;
  // A median, a mean, a median of medians, the fastest: whichever it is, it lies among them. Logs round.
  constexpr double kRounding = 0.01;
  const auto [least, most] = std::ranges::minmax(samples);
  if (*metric.value >= (1 - kRounding) * least && *metric.value <= (1 + kRounding) * most) return;
  refuse(fmt::format("'{}' is {} {}, and its {} are from {} to {}; expected a value among them", metric.name,
                     *metric.value, metric.unit, counted(count, "sample"), least, most));
}

void check_same_unit(const std::string& name, const std::string& unit, const std::string& of_samples) {
  if (unit == of_samples) return;
  refuse(fmt::format("'{}' is in '{}', and has samples in '{}'; expected one unit", name, unit, of_samples));
}

// Times below 0 and infinite ones are refused where a line is read.
void check_times(const std::string& name, const std::string& unit, std::span<const double> values) {
  if (name != "time" || !seconds_of_unit(unit) || std::ranges::find(values, 0.0) == values.end()) return;
  refuse(fmt::format("'{}' took 0 {}: no time is that", name, unit));
}

// An error and a tolerance are distances, and a check passed only if it met its own tolerance.
void check_outcome(const worker::CheckRecord& check) {
  for (const auto& [what, value] : {std::pair{"worst_error", check.worst_error}, {"tolerance", check.tolerance}}) {
    if (value && *value < 0) {
      refuse(
          fmt::format("check '{}' has a '{}' of {}; expected 0 or more: it is a distance", check.name, what, *value));
    }
  }
  if (check.outcome != Outcome::passed) return;
  if (check.tolerance && std::isnan(*check.tolerance)) {
    refuse(fmt::format("check '{}' is 'passed' with a tolerance of NaN; expected a number, or no 'tolerance'",
                       check.name));
  }
  if (!check.worst_error) return;
  if (!std::isfinite(*check.worst_error)) {
    refuse(fmt::format("check '{}' is 'passed' with an error of {}; expected a finite one, or 'falsified'", check.name,
                       *check.worst_error));
  }
  if (check.tolerance && *check.worst_error > *check.tolerance) {
    refuse(fmt::format("check '{}' is 'passed', but its error {} is above its tolerance {}; expected 'falsified'",
                       check.name, *check.worst_error, *check.tolerance));
  }
}

}  // namespace

UtcTime utc_time(const char* key, std::string_view text) {
  const std::optional<UtcTime> time = parse(text);
  if (!time) {
    refuse(fmt::format("'{}' must be a time in UTC such as 2026-05-01T12:34:56.789Z, found '{}'", key, text));
  }
  if (*time < UtcTime{}) refuse(fmt::format("'{}' is {}, before 1970", key, text));
  if (const std::string now = utc_now(); *time > *parse(now) + days(1)) {
    refuse(fmt::format("'{}' is {}, in the future: it is {} here", key, text, now));
  }
  return *time;
}

std::string to_text(UtcTime time) {
  const auto whole = floor<seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z", fmt::gmtime(system_clock::to_time_t(whole)),
                     (time - whole).count());
}

void check_record(const worker::Record& record, const registry::Experiment& experiment, int world_size) {
  if (const auto* metric = std::get_if<worker::MetricRecord>(&record)) {
    check_rank(metric->rank, world_size);
    check_unit(experiment, metric->name, metric->unit);
    if (metric->value) check_times(metric->name, metric->unit, std::array{*metric->value});
    if (metric->n && *metric->n < 0) refuse(fmt::format("'{}' has {} samples behind it", metric->name, *metric->n));
    for (const std::optional<double>& end : {metric->low, metric->high}) {
      if (!end || *end >= 0 || !seconds_of_unit(metric->unit)) continue;
      refuse(
          fmt::format("the interval of '{}' has the end {} {}; expected 0 or more", metric->name, *end, metric->unit));
    }
    if (metric->low && metric->high && *metric->low > *metric->high) {
      refuse(
          fmt::format("the interval of '{}' begins at {} and ends at {}", metric->name, *metric->low, *metric->high));
    }
    if (metric->value &&
        ((metric->low && *metric->value < *metric->low) || (metric->high && *metric->value > *metric->high))) {
      refuse(fmt::format("the value of '{}', {}, lies outside its own interval", metric->name, *metric->value));
    }
  } else if (const auto* sample = std::get_if<worker::SampleRecord>(&record)) {
    check_rank(sample->rank, world_size);
    check_unit(experiment, sample->series, sample->unit);
    check_times(sample->series, sample->unit, sample->values);
  } else if (const auto* check = std::get_if<worker::CheckRecord>(&record)) {
    check_outcome(*check);
  } else if (const auto* memory = std::get_if<worker::MemoryEventRecord>(&record)) {
    check_rank(memory->rank, world_size);
  } else if (const auto* kernel = std::get_if<worker::KernelStatRecord>(&record)) {
    check_rank(kernel->rank, world_size);
  } else if (const auto* span = std::get_if<worker::SpanRecord>(&record)) {
    check_rank(span->rank, world_size);
  }
}

void check_metrics_against_samples(std::span<const worker::Record> records) {
  struct Series {
    std::string unit;
    std::vector<double> values;
  };
  std::map<std::pair<std::string, int>, Series> samples;  // of times, by name and rank
  for (const worker::Record& record : records) {
    const auto* sample = std::get_if<worker::SampleRecord>(&record);
    if (sample == nullptr || !seconds_of_unit(sample->unit)) continue;
    Series& series = samples.try_emplace({sample->series, sample->rank}, Series{sample->unit, {}}).first->second;
    check_same_unit(sample->series, sample->unit, series.unit);
    series.values.insert(series.values.end(), sample->values.begin(), sample->values.end());
  }
  for (const worker::Record& record : records) {
    const auto* metric = std::get_if<worker::MetricRecord>(&record);
    if (metric == nullptr) continue;
    const auto own = samples.find({metric->name, metric->rank});
    if (own == samples.end()) continue;
    check_same_unit(metric->name, metric->unit, own->second.unit);
    if (!own->second.values.empty()) check_metric(*metric, own->second.values);
  }
}

}  // namespace syslab::cli
