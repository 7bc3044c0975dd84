#include "runner/slowest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "stats/summary.hpp"

namespace syslab::runner {
namespace {

using worker::MetricRecord;
using worker::Record;
using worker::SampleRecord;

constexpr std::int64_t kFewestForInterval = 6;

struct Series {
  std::string name;
  std::map<int, std::vector<double>> of_rank;  // pieces joined in order of time

  // Whether every rank took as many samples as the others.
  bool in_step() const {
    const std::size_t wanted = of_rank.begin()->second.size();
    return std::all_of(of_rank.begin(), of_rank.end(), [&](const auto& it) { return it.second.size() == wanted; });
  }
};

// Series of seconds that every rank of these records has; none where there is but one rank.
std::vector<Series> shared_series(std::span<const Record> records) {
  std::vector<Series> all;
  int ranks = 0;
  for (const Record& record : records) {
    if (const auto* metric = std::get_if<MetricRecord>(&record)) ranks = std::max(ranks, metric->rank + 1);
    const auto* sample = std::get_if<SampleRecord>(&record);
    if (sample == nullptr || sample->rank < 0) continue;
    ranks = std::max(ranks, sample->rank + 1);
    if (sample->unit != "s") continue;
    auto known = std::ranges::find(all, sample->series, &Series::name);
    if (known == all.end()) known = all.insert(all.end(), Series{sample->series, {}});
    std::vector<double>& values = known->of_rank[sample->rank];
    values.insert(values.end(), sample->values.begin(), sample->values.end());
  }
  std::erase_if(all, [&](const Series& it) { return ranks < 2 || static_cast<int>(it.of_rank.size()) < ranks; });
  return all;
}

std::vector<double> slowest(const Series& series) {
  std::vector<double> longest = series.of_rank.begin()->second;
  for (const auto& [rank, values] : series.of_rank) {
    for (std::size_t i = 0; i < longest.size(); ++i) {
      // A NaN sample stays NaN: another rank's sample must not hide it.
      if (std::isnan(values[i]) || values[i] > longest[i]) longest[i] = values[i];
    }
  }
  return longest;
}

// The statistics that ranks send of a series, by the suffix of the name; the median has the name itself.
struct Statistic {
  const char* suffix;
  double stats::Summary::*of;
};
constexpr std::array<Statistic, 6> kStatistics{{{"", &stats::Summary::median},
                                                {"_mean", &stats::Summary::mean},
                                                {"_stddev", &stats::Summary::standard_deviation},
                                                {"_min", &stats::Summary::min},
                                                {"_q1", &stats::Summary::q1},
                                                {"_q3", &stats::Summary::q3}}};

// Each rank's metric of that name is this statistic of its own samples.
bool told_by_all(const std::string& name, const Statistic& statistic, const std::map<int, stats::Summary>& of_rank,
                 std::span<const Record> records) {
  std::size_t found = 0;
  for (const Record& record : records) {
    const auto* metric = std::get_if<MetricRecord>(&record);
    if (metric == nullptr || metric->name != name || metric->unit != "s") continue;
    const auto own = of_rank.find(metric->rank);
    if (own == of_rank.end() || own->second.n == 0 || !metric->value) return false;
    const double value = own->second.*statistic.of;
    if (!(std::abs(*metric->value - value) <= 1e-6 * std::abs(value))) return false;
    ++found;
  }
  return found == of_rank.size();
}

MetricRecord of_all_ranks(const Series& series, const Statistic& statistic) {
  MetricRecord metric;
  metric.name = series.name + statistic.suffix;
  metric.unit = "s";
  metric.rank = worker::kAllRanks;
  if (!series.in_step()) {
    metric.note = "the ranks took different numbers of samples: there is no step to take the slowest rank of";
    return metric;
  }
  const stats::Summary summary = stats::summarize(slowest(series));
  metric.value = summary.*statistic.of;
  metric.n = summary.n;
  if (statistic.of == &stats::Summary::median && summary.n >= kFewestForInterval) {
    metric.low = summary.median_95.low;
    metric.high = summary.median_95.high;
  }
  metric.note = fmt::format("of the slowest of {} ranks at each sample", series.of_rank.size());
  return metric;
}

}  // namespace

std::vector<SampleRecord> slowest_of_ranks(std::span<const Record> records) {
  std::vector<SampleRecord> found;
  for (const Series& series : shared_series(records)) {
    if (!series.in_step()) continue;
    SampleRecord sample;
    sample.series = series.name;
    sample.unit = "s";
    sample.rank = worker::kAllRanks;
    sample.values = slowest(series);
    found.push_back(std::move(sample));
  }
  return found;
}

std::vector<MetricRecord> metrics_of_all_ranks(std::span<const Record> records) {
  std::vector<MetricRecord> metrics;
  for (const Series& series : shared_series(records)) {
    std::map<int, stats::Summary> of_rank;
    for (const auto& [rank, values] : series.of_rank) of_rank[rank] = stats::summarize(values);
    for (const Statistic& statistic : kStatistics) {
      if (told_by_all(series.name + statistic.suffix, statistic, of_rank, records)) {
        metrics.push_back(of_all_ranks(series, statistic));
      }
    }
  }
  return metrics;
}

}  // namespace syslab::runner
