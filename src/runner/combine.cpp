#include "runner/combine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/text/json_text.hpp"
#include "runner/slowest.hpp"
#include "runner/united_facts.hpp"
#include "stats/launches.hpp"

namespace syslab::runner {
namespace {

using worker::CheckRecord;
using worker::MetricRecord;
using worker::SampleRecord;

using SeriesKey = std::tuple<std::string, std::string, int>;  // name, unit, rank
using MetricKey = std::pair<std::string, int>;                // name, rank

constexpr double kSame = 1e-6;  // relative, for sums in different orders

bool same(double a, double b) { return std::abs(a - b) <= kSame * std::max(std::abs(a), std::abs(b)); }

template <typename Type>
std::vector<const Type*> all_of(const Launch& launch) {
  std::vector<const Type*> found;
  for (const worker::Record& record : launch.records) {
    if (const auto* one = std::get_if<Type>(&record)) found.push_back(one);
  }
  return found;
}

// --- metrics --------------------------------------------------------------------------------------------------------

class Metrics {
 public:
  Metrics(const std::vector<Launch>& launches) : launches_(launches) {
    for (std::size_t i = 0; i < launches.size(); ++i) {
      for (const MetricRecord* metric : all_of<MetricRecord>(launches[i])) {
        const MetricKey key{metric->name, metric->rank};
        auto& found = metrics_[key];
        if (found.empty()) order_.push_back(key);
        found.push_back(metric);
      }
      std::vector<const SampleRecord*> samples = all_of<SampleRecord>(launches[i]);
      const std::vector<SampleRecord> slowest = slowest_of_ranks(launches[i].records);
      for (const SampleRecord& sample : slowest) samples.push_back(&sample);
      for (const SampleRecord* sample : samples) {
        auto& values = series_[{sample->series, sample->unit, sample->rank}];
        values.resize(launches.size());
        values[i].insert(values[i].end(), sample->values.begin(), sample->values.end());
      }
    }
  }

  std::vector<MetricRecord> combined() {
    std::vector<MetricRecord> all;
    for (const MetricKey& key : order_) {
      if (std::optional<MetricRecord> headline = median_of_medians(key)) headlines_[key] = *headline;
    }
    for (const MetricKey& key : order_) {
      if (const auto headline = headlines_.find(key); headline != headlines_.end()) {
        all.push_back(headline->second);
      } else if (std::optional<MetricRecord> rate = rate_of_time(key)) {
        all.push_back(*rate);
      } else {
        all.push_back(median_of_values(key));
      }
    }
    return all;
  }

 private:
  std::string count() const { return std::to_string(launches_.size()); }

  bool present_everywhere(const MetricKey& key) const {
    const auto& found = metrics_.at(key);
    return found.size() == launches_.size() &&
           std::all_of(found.begin(), found.end(), [](const MetricRecord* it) { return it->value.has_value(); });
  }

  // For metrics where each launch's value is the median of its series of the same name.
  std::optional<MetricRecord> median_of_medians(const MetricKey& key) const {
    const auto& found = metrics_.at(key);
    const auto series = series_.find({key.first, found.front()->unit, key.second});
    if (series == series_.end() || !present_everywhere(key)) return std::nullopt;
    const stats::LaunchesSummary summary = stats::summarize_launches(series->second);
    if (summary.medians.size() != found.size()) return std::nullopt;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!same(*found[i]->value, summary.medians[i])) return std::nullopt;
    }
    MetricRecord metric = *found.front();
    metric.value = summary.median;
    metric.low = summary.median_95.low;
    metric.high = summary.median_95.high;
    metric.n = summary.samples;
    metric.note = fmt::format("median of {} launches' medians; the interval is of launches", count());
    return metric;
  }

  // Work per time: the same work in each launch.
  std::optional<MetricRecord> rate_of_time(const MetricKey& key) const {
    const auto& found = metrics_.at(key);
    const auto time = headlines_.find({"time", key.second});
    if (time == headlines_.end() || !found.front()->unit.ends_with("/s") || !present_everywhere(key)) return {};
    const auto& times = metrics_.at(time->first);
    const double work = *found.front()->value * *times.front()->value;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!same(*found[i]->value * *times[i]->value, work)) return {};
    }
    MetricRecord rate = *found.front();
    rate.value = work / *time->second.value;
    rate.low = work / *time->second.high;  // the longest time is the lowest rate
    rate.high = work / *time->second.low;
    rate.n = time->second.n;
    rate.note = fmt::format("from the time of {} launches", count());
    return rate;
  }

  MetricRecord median_of_values(const MetricKey& key) const {
    const auto& found = metrics_.at(key);
    std::vector<double> values;
    std::string why;
    for (const MetricRecord* one : found) {
      if (one->value) {
        values.push_back(*one->value);
      } else {
        why = one->note;
      }
    }
    MetricRecord metric = *found.front();
    if (values.empty()) return metric;
    std::sort(values.begin(), values.end());
    metric.value = stats::quantile(values, 0.5);
    metric.low.reset();
    metric.high.reset();
    metric.n.reset();
    metric.note = values.size() == launches_.size()
                      ? fmt::format("median of {} launches", count())
                      : fmt::format("median of {} of {} launches{}", values.size(), count(),
                                    why.empty() ? std::string() : "; in another: " + why);
    return metric;
  }

  const std::vector<Launch>& launches_;
  std::map<SeriesKey, std::vector<std::vector<double>>> series_;  // one vector a launch
  std::map<MetricKey, std::vector<const MetricRecord*>> metrics_;
  std::vector<MetricKey> order_;
  std::map<MetricKey, MetricRecord> headlines_;
};

// --- checks ---------------------------------------------------------------------------------------------------------

double badness(const CheckRecord& check) {
  if (check.outcome != Outcome::passed && check.outcome != Outcome::not_run && check.outcome != Outcome::gave_up)
    return INFINITY;
  if (!check.worst_error) return -1;
  return check.tolerance && *check.tolerance > 0 ? *check.worst_error / *check.tolerance : *check.worst_error;
}

std::vector<CheckRecord> combined_checks(const std::vector<Launch>& launches) {
  std::vector<CheckRecord> all;
  for (const Launch& launch : launches) {
    for (const CheckRecord* check : all_of<CheckRecord>(launch)) {
      const auto known = std::find_if(all.begin(), all.end(), [&](const CheckRecord& it) {
        return it.name == check->name && it.contract == check->contract;
      });
      if (known == all.end()) {
        all.push_back(*check);
        continue;
      }
      CheckRecord worse = badness(*check) > badness(*known) ? *check : *known;
      worse.cases_run = check->cases_run + known->cases_run;
      worse.fraction_checked = std::min(check->fraction_checked, known->fraction_checked);
      *known = std::move(worse);
    }
  }
  return all;
}

// --- facts ----------------------------------------------------------------------------------------------------------

std::string combined_facts(const std::vector<Launch>& launches) {
  std::vector<Json> each;
  for (const Launch& launch : launches) {
    each.push_back(parse_json(launch.facts_json));
    each.back()["status"] = syslab::to_string(launch.status);
  }
  Json facts = united_facts(each);
  facts["launches"] = std::move(each);
  return repaired_json_text(facts);
}

}  // namespace

Launch combined(std::vector<Launch> launches, int wanted) {
  if (wanted == 1 && launches.size() == 1) return std::move(launches.front());
  Launch whole;
  whole.status = launches.back().status;
  whole.detail = launches.back().detail;
  if (whole.status != Status::ok) {
    whole.detail = fmt::format("launch {} of {}: {}", launches.size(), wanted, whole.detail);
  }
  whole.facts_json = combined_facts(launches);
  for (CheckRecord& check : combined_checks(launches)) whole.records.emplace_back(std::move(check));
  for (MetricRecord& metric : Metrics(launches).combined()) whole.records.emplace_back(std::move(metric));
  for (std::size_t i = 0; i < launches.size(); ++i) {
    for (worker::Record& record : launches[i].records) {
      if (auto* sample = std::get_if<SampleRecord>(&record)) {
        sample->launch = static_cast<int>(i);
      } else if (std::holds_alternative<CheckRecord>(record) || std::holds_alternative<MetricRecord>(record) || i > 0) {
        continue;
      }
      whole.records.push_back(std::move(record));
    }
  }
  return whole;
}

}  // namespace syslab::runner
