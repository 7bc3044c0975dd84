// How an operator case is timed: by which clock and protocol, with which intervals and labels, alone and in bursts.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/worker/operator_case_fixture.hpp"
#include "tests/worker/three_orders.hpp"
#include "worker/cases/bursts.hpp"
#include "worker/cases/checked_operator.hpp"

namespace syslab::worker {
namespace {

TEST(OperatorCase, BelievesAnotherProcessAboutItsTime) {
  Operation foreign = doubling();
  foreign.self_time = [] { return Nanoseconds(std::chrono::milliseconds(2)); };
  EXPECT_DOUBLE_EQ(*run(foreign).metric("time").value, 2e-3);
}

TEST(OperatorCase, ASlowOracleCostsNoSamples) {
  Operation slow = doubling();
  slow.expect = [exact = doubling().expect](const Inputs& in) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));  // more than the whole budget of `quick`
    return exact(in);
  };
  const Outcome outcome = run(slow);
  EXPECT_GE(outcome.facts().at("verified"), 1);
  EXPECT_LE(outcome.facts().at("verified"), 2);  // one of the first half, if it was drawn, and one of the second
  EXPECT_GE(*outcome.metric("time").n, 8);
}

// Else the samples of the second would be believed because one of the first was right.
TEST(CheckedOperator, LooksAtASampleOfEverySeriesHoweverSlowTheOracle) {
  Operation slow = doubling();
  slow.expect = [exact = doubling().expect](const Inputs& in) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));  // more than a fifth of the budget of `quick`
    return exact(in);
  };
  CaseContext context(request(), [](const Record&) {});
  const measure::Protocol protocol = measure::find_protocol("quick");
  const auto device = measure::make_host_device();
  CheckedOperator checked(context, slow, protocol, *device, 1);
  checked.check();
  const measure::Subject subject = checked.subject();
  subject.call(0);
  EXPECT_TRUE(subject.verify(0));
  EXPECT_FALSE(subject.verify(0)) << "the oracle's share of the time is used up";
  EXPECT_TRUE(subject.verify_anyway(0));
  checked.begin_series();
  EXPECT_TRUE(subject.verify(0));
}

TEST(OperatorCase, FewSamplesHaveNoInterval) {
  Operation slow = doubling();
  slow.self_time = [] { return Nanoseconds(std::chrono::milliseconds(80)); };  // budget of `quick`: 120 ms
  const MetricRecord time = run(slow).metric("time");
  EXPECT_EQ(*time.n, 2);
  EXPECT_FALSE(time.low.has_value());
  EXPECT_NE(time.note, "");
}

TEST(OperatorCase, Cs336QuotesMeanAndDeviationOfTenSteps) {
  CaseRequest asked = request();
  asked.protocol = "cs336";
  const Outcome outcome = run(doubling(), asked);
  EXPECT_EQ(outcome.facts().at("stop"), "count");
  EXPECT_EQ(outcome.facts().at("protocol").at("headline").at(0), "time_mean");
  const MetricRecord& mean = outcome.metric("time_mean");
  EXPECT_EQ(mean.n, 10);
  EXPECT_LT(*mean.low, *mean.value);
  EXPECT_GT(*mean.high, *mean.value);
  EXPECT_GE(*outcome.metric("time_stddev").value, 0);
}

// Ten samples of the same two values, in turns or one after the other: the second kind knows its mean far less well.
TEST(OperatorCase, TheMeansIntervalKnowsOfSamplesThatHangTogether) {
  const auto width = [](bool in_turns) {
    Operation timed = doubling();
    int calls = -5;  // of warm-up
    timed.self_time = [&calls, in_turns] {
      const int sample = calls++;
      return Nanoseconds((in_turns ? sample % 2 != 0 : sample >= 5) ? 2'000'000 : 1'000'000);
    };
    CaseRequest asked = request();
    asked.protocol = "cs336";
    const MetricRecord mean = run(timed, asked).metric("time_mean");
    EXPECT_DOUBLE_EQ(*mean.value, 1.5e-3);
    return *mean.high - *mean.low;
  };
  EXPECT_GT(width(false), 3 * width(true));
}

TEST(OperatorCase, DoBenchStoresMeanAndMedian) {
  Operation steady = doubling();
  int calls = 0;
  steady.self_time = [&calls] { return Nanoseconds(++calls % 4 == 0 ? 2'000'000 : 1'000'000); };
  CaseRequest asked = request();
  asked.protocol = "do_bench";
  const Outcome outcome = run(steady, asked);
  EXPECT_EQ(outcome.facts().at("flush_bytes"), 256'000'000);
  EXPECT_EQ(outcome.facts().at("cache_by"), "flush");
  EXPECT_TRUE(outcome.metric("time").value.has_value());
  EXPECT_TRUE(outcome.metric("time_mean").value.has_value());
}

TEST(OperatorCase, AGraphOnTheCpuIsUnsupportedBeforeAnythingIsCalled) {
  Operation watched = doubling();
  watched.call = [](const Inputs&, const Outputs&, device::Stream) { FAIL() << "called"; };
  CaseRequest asked = request();
  asked.protocol = "graph";
  EXPECT_THROW(run(watched, asked), Unsupported);
}

TEST(OperatorCase, LabelsNoiseAndWhoeverElseWasThere) {
  const Json facts = run(doubling()).facts();
  ASSERT_TRUE(facts.at("noise").is_array());
  EXPECT_TRUE(facts.contains("load_average"));
  Operation slow = doubling();
  slow.self_time = [] { return Nanoseconds(std::chrono::milliseconds(80)); };
  const Json labels = run(slow).facts().at("noise");
  EXPECT_NE(std::find(labels.begin(), labels.end(), "few_samples"), labels.end()) << labels.dump();
}

TEST(OperatorCase, IsTimedInBurstsWhenTheHostOrdersThem) {
  Operation steady = doubling();
  steady.self_time = [] { return Nanoseconds(std::chrono::milliseconds(2)); };
  CaseRequest asked = request();
  asked.task = Task::paired;
  asked.burst = std::chrono::milliseconds(10);
  ThreeOrders host;
  Outcome outcome;
  CaseContext context(
      asked, [&outcome](const Record& record) { outcome.records.push_back(record); }, &host);
  run_operator_case(context, steady);
  EXPECT_EQ(host.told.at(0).calls_per_burst, 5);
  EXPECT_DOUBLE_EQ(host.told.at(0).seconds_per_call, 2e-3);
  EXPECT_EQ(host.bursts, std::vector<double>(3, 2e-3));
  EXPECT_EQ(outcome.check("reference:y").outcome, syslab::Outcome::passed);
  EXPECT_GE(outcome.check("samples:y").cases_run, 1);
  EXPECT_EQ(outcome.all<SampleRecord>().at(0).values, host.bursts);
  EXPECT_EQ(outcome.facts().at("bursts"), 3);
}

TEST(OperatorCase, InTurnsWhatAnotherProcessTimesWarmsUpForHalfASecondAtMost) {
  Operation steady = doubling();
  steady.self_time = [] { return Nanoseconds(std::chrono::milliseconds(20)); };
  for (const bool others : {true, false}) {
    CaseRequest asked = request();
    asked.protocol = "kernel";
    asked.task = Task::paired;
    if (others) asked.mine = Submitted{};
    ThreeOrders host;
    Outcome outcome;
    CaseContext context(
        asked, [&outcome](const Record& record) { outcome.records.push_back(record); }, &host);
    run_operator_case(context, steady);
    EXPECT_EQ(outcome.facts().at("protocol").at("warmup_limit_ns"), others ? 500'000'000 : 2'000'000'000);
  }
}

TEST(OperatorCase, AWrongImplementationIsNeverReadyForBursts) {
  Operation wrong = doubling();
  wrong.call = [](const Inputs&, const Outputs& out, device::Stream) { std::fill_n(data(out[0]), kElements, 0.0F); };
  CaseRequest asked = request();
  asked.task = Task::paired;
  ThreeOrders host;
  CaseContext context(
      asked, [](const Record&) {}, &host);
  EXPECT_THROW(run_operator_case(context, wrong), CheckFailed);
  EXPECT_TRUE(host.told.empty());
}

}  // namespace
}  // namespace syslab::worker
