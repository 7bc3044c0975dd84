#include "runner/combine.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "stats/summary.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::runner {
namespace {

using worker::CheckRecord;
using worker::MetricRecord;
using worker::SampleRecord;

constexpr double kFlops = 6e9;

// A launch whose samples are `seconds`, with the metrics that a measured case emits.
Launch measured(const std::vector<double>& seconds, double rss) {
  Launch launch;
  launch.status = Status::ok;
  SampleRecord samples{.series = "time", .unit = "s"};
  samples.values = seconds;
  const double median = stats::summarize(seconds).median;
  launch.records = {CheckRecord{.name = "reference:out", .outcome = Outcome::passed, .cases_run = 1},
                    samples,
                    MetricRecord{.name = "time", .unit = "s", .value = median, .n = std::int64_t(seconds.size())},
                    MetricRecord{.name = "tflops", .unit = "TFLOP/s", .value = kFlops * 1e-12 / median},
                    MetricRecord{.name = "link", .unit = "GB/s", .value = rss},
                    MetricRecord{.name = "max_rss_bytes", .unit = "B", .value = rss}};
  launch.facts_json = Json{{"stop", "precision"}, {"samples", seconds.size()}, {"worker", rss}}.dump();
  return launch;
}

std::vector<Launch> three() {
  return {measured({1.0, 1.1, 1.2}, 10), measured({3.0, 3.1, 3.2}, 30), measured({2.0, 2.1, 2.2}, 20)};
}

template <typename Type>
std::vector<Type> all_of(const Launch& launch) {
  std::vector<Type> found;
  for (const worker::Record& record : launch.records) {
    if (const auto* one = std::get_if<Type>(&record)) found.push_back(*one);
  }
  return found;
}

MetricRecord metric(const Launch& launch, const std::string& name) {
  for (const MetricRecord& one : all_of<MetricRecord>(launch)) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << "no metric " << name;
  return {};
}

TEST(Launches, FactsAsDeepAsTheyMayBeAreReadAgain) {
  constexpr std::size_t kLists = worker::kMostFactLevels - 1;
  std::vector<Launch> launches = three();
  const std::string deep = "{\"ranks\":[{\"deep\":" + std::string(kLists, '[') + std::string(kLists, ']') + "}]}";
  for (Launch& launch : launches) launch.facts_json = deep;  // of one rank of several
  const Launch whole = combined(std::move(launches), 3);
  EXPECT_NO_THROW(parse_json(whole.facts_json));
  EXPECT_EQ(nesting_fault("[[" + whole.facts_json + "]]"), "");  // as what is printed of several attempts
}

TEST(Launches, TimeIsTheMedianOfTheirMediansWithAnIntervalAcrossThem) {
  const Launch whole = combined(three(), 3);
  const MetricRecord time = metric(whole, "time");
  EXPECT_DOUBLE_EQ(*time.value, 2.1);
  EXPECT_EQ(time.n, 9);
  // Each launch alone is sure within 0.1; together they know that launches differ by 1.
  EXPECT_LT(*time.low, 1.2);
  EXPECT_GT(*time.high, 3.0);
  EXPECT_NE(time.note.find("3 launches"), std::string::npos) << time.note;
}

TEST(Launches, RatesOfTheTimeFollowIt) {
  const Launch whole = combined(three(), 3);
  const MetricRecord time = metric(whole, "time"), rate = metric(whole, "tflops");
  EXPECT_NEAR(*rate.value, kFlops * 1e-12 / 2.1, 1e-12);
  EXPECT_NEAR(*rate.low, kFlops * 1e-12 / *time.high, 1e-12);
  EXPECT_NEAR(*rate.high, kFlops * 1e-12 / *time.low, 1e-12);
}

TEST(Launches, OtherMetricsAreTheMedianOfTheLaunchesAndSaySo) {
  const Launch whole = combined(three(), 3);
  for (const char* name : {"max_rss_bytes", "link"}) {  // "link" ends in "/s", but is not work per this time
    EXPECT_EQ(metric(whole, name).value, 20.0);
    EXPECT_EQ(metric(whole, name).note, "median of 3 launches");
    EXPECT_FALSE(metric(whole, name).low.has_value());
  }
}

TEST(Launches, AMetricThatOneCouldNotGiveSaysWhy) {
  std::vector<Launch> launches = three();
  for (worker::Record& record : launches[1].records) {
    auto* rss = std::get_if<MetricRecord>(&record);
    if (rss != nullptr && rss->name == "max_rss_bytes") rss->value.reset(), rss->note = "no VmHWM";
  }
  const MetricRecord rss = metric(combined(std::move(launches), 3), "max_rss_bytes");
  EXPECT_EQ(rss.value, 15.0);
  EXPECT_EQ(rss.note, "median of 2 of 3 launches; in another: no VmHWM");
}

TEST(Launches, SamplesCarryTheirLaunch) {
  const auto samples = all_of<SampleRecord>(combined(three(), 3));
  ASSERT_EQ(samples.size(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(samples[static_cast<std::size_t>(i)].launch, i);
  EXPECT_EQ(samples[1].values.front(), 3.0);
}

TEST(Launches, ChecksOfOneNameAreOneWithTheWorstError) {
  std::vector<Launch> launches = three();
  for (std::size_t i = 0; i < 3; ++i) {
    auto& check = std::get<CheckRecord>(launches[i].records[0]);
    check.worst_error = i == 1 ? 0.5 : 0.1;
    check.tolerance = 1;
    check.message = i == 1 ? "the worst" : "";
    check.fraction_checked = i == 2 ? 0.25 : 1;
  }
  const auto checks = all_of<CheckRecord>(combined(std::move(launches), 3));
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].cases_run, 3);
  EXPECT_EQ(checks[0].worst_error, 0.5);
  EXPECT_EQ(checks[0].message, "the worst");
  EXPECT_EQ(checks[0].fraction_checked, 0.25);
}

TEST(Launches, FactsOfEachAreKeptAndWhatAllShareStandsAbove) {
  std::vector<Launch> launches = three();
  launches[2].facts_json = R"({"stop": "device time", "samples": 3, "worker": 3, "noise": ["late"]})";
  const Json facts = Json::parse(combined(std::move(launches), 3).facts_json);
  EXPECT_EQ(facts.at("launches").size(), 3U);
  EXPECT_EQ(facts.at("launches")[2].at("stop"), "device time");
  EXPECT_EQ(facts.at("stop"), "precision, device time");
  EXPECT_EQ(facts.at("samples"), 9);
  EXPECT_EQ(facts.at("noise"), Json::array({"late"}));
  EXPECT_FALSE(facts.contains("worker"));  // three different processes
}

TEST(Launches, ABadOneGivesTheAttemptItsStatus) {
  std::vector<Launch> launches = three();
  launches.pop_back();
  launches.back().status = Status::timeout;
  launches.back().detail = "stopped after 10 s";
  const Launch whole = combined(std::move(launches), 3);
  EXPECT_EQ(whole.status, Status::timeout);
  EXPECT_EQ(whole.detail, "launch 2 of 3: stopped after 10 s");
  EXPECT_EQ(all_of<SampleRecord>(whole).size(), 2U);
}

TEST(Launches, OneThatWasWantedAloneStaysAsItIs) {
  std::vector<Launch> one;
  one.push_back(measured({1.0, 1.1, 1.2}, 10));
  const Launch before = one[0];
  const Launch whole = combined(std::move(one), 1);
  EXPECT_EQ(whole.facts_json, before.facts_json);
  EXPECT_EQ(metric(whole, "time").note, "");
}

}  // namespace
}  // namespace syslab::runner
