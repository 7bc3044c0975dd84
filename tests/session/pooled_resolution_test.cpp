#include "session/pooled_resolution.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace syslab::cli {
namespace {

// As the worker writes them (worker/wire/emit_times.cpp): a tenth of the time may be the lab's own.
std::string facts_of(double share, double with_results = 0) {
  const bool is_under = share > 0.1 || with_results > 0.5;
  return fmt::format(
      R"({{"handover": {{"high": 1e-5, "with_results": 1e-5, "share": {}, "share_with_results": {}}}{}}})", share,
      with_results, is_under ? R"(, "no_time": "under_resolution")" : "");
}

PooledResolution of(const std::vector<double>& shares) {
  PooledResolution all;
  for (const double share : shares) all.take(facts_of(share));
  return all;
}

TEST(PooledResolution, KeepsAllLaunchesOrNoneByTheirMean) {
  // 40 % of them alone have no time, as of a call whose share scatters around 0.09.
  const PooledResolution kept = of({0.12, 0.06, 0.07, 0.11, 0.06});
  EXPECT_EQ(kept.too_short_alone(), 2);
  EXPECT_EQ(kept.launches(), 5);
  EXPECT_FALSE(kept.no_time());
  // And a minority of them may be enough to refuse all.
  const PooledResolution refused = of({0.3, 0.06, 0.07, 0.3, 0.06});
  ASSERT_TRUE(refused.no_time());
  EXPECT_NEAR(refused.no_time()->seconds, 1e-5 / 0.3, 1e-12);
}

// As the runner stores them: what launches do not agree on, their numbers, stands apart for each.
TEST(PooledResolution, TakesEachLaunchOfAnAttemptOfSeveral) {
  const auto attempt = [](double first, double second, const char* agreed) {
    return fmt::format(R"({{{}"launches": [{}, {}]}})", agreed, facts_of(first), facts_of(second));
  };
  PooledResolution busy;
  busy.take(attempt(0.6, 0.02, ""));
  EXPECT_EQ(busy.launches(), 2);
  EXPECT_TRUE(busy.no_time()) << "a mean of 31 %";
  PooledResolution quiet;
  quiet.take(attempt(0.12, 0.02, ""));
  EXPECT_EQ(quiet.too_short_alone(), 1);
  EXPECT_FALSE(quiet.no_time());
  const std::optional<NoTime> told = no_time(attempt(0.3, 0.5, R"("no_time": "under_resolution", )"));
  ASSERT_TRUE(told);
  EXPECT_NEAR(told->seconds, 1e-5 / 0.5, 1e-12);
  EXPECT_EQ(told->launch, 2);
}

TEST(PooledResolution, IsHopelessOnlyFarBeyondTheLimit) {
  EXPECT_FALSE(of({0.15}).is_hopeless());
  EXPECT_TRUE(of({0.15}).no_time());
  EXPECT_TRUE(of({0.5}).is_hopeless());
  EXPECT_FALSE(of({}).no_time());
}

// One launch of a call of 60 ms on a busy machine, with the shortest hand-over that an empty call had in it.
std::string busy_facts(double high, double least) {
  return fmt::format(
      R"({{"handover": {{"high": {0}, "least": {1}, "with_results": {0}, "least_with_results": {1}, "share": {2},
          "share_with_results": {2}}}, "no_time": "under_resolution"}})",
      high, least, high / 0.06);
}

TEST(PooledResolution, IsNotHopelessWhereAQuietMachineWouldDo) {
  PooledResolution all;
  all.take(busy_facts(50e-3, 100e-6));
  EXPECT_TRUE(all.no_time());
  EXPECT_FALSE(all.is_hopeless()) << "a busy moment";
  for (int launch = 0; launch < 11; ++launch) all.take(facts_of(0.01));
  EXPECT_FALSE(all.no_time()) << "it counts less with each further launch";
  PooledResolution too_short;
  for (int launch = 0; launch < 3; ++launch) {
    EXPECT_FALSE(too_short.is_hopeless()) << launch;
    too_short.take(busy_facts(50e-3, 7e-3));
  }
  EXPECT_TRUE(too_short.is_hopeless()) << "more than a tenth at the least of three launches";
  // The shortest call decides: a busy machine makes calls longer, too.
  all.take(R"({"handover": {"high": 20e-6, "least": 20e-6, "share": 0.5}, "no_time": "under_resolution"})");
  for (int launch = 0; launch < 8; ++launch) all.take(facts_of(0.5));
  EXPECT_TRUE(all.is_hopeless());
}

TEST(PooledResolution, CopyingOfResultsMayTakeHalf) {
  PooledResolution all;
  all.take(facts_of(0.05, 0.45));
  EXPECT_FALSE(all.no_time());
  all.take(facts_of(0.05, 0.7));
  EXPECT_TRUE(all.no_time());
}

TEST(PooledResolution, WhatHasNoNumbersIsTakenAtItsWord) {
  PooledResolution all;
  all.take("{}");
  EXPECT_FALSE(all.no_time());
  all.take(R"({"no_time": "under_resolution"})");
  EXPECT_TRUE(all.is_hopeless());
}

// A call of 60 ms on a machine with others: one hand-over waited, and the shortest of them would be well within.
TEST(PooledResolution, NamesTheLaunchWhoseHandOverWaitedAndTheShortestOfAll) {
  PooledResolution all;
  const auto facts = [](double high, double least) {
    return fmt::format(R"({{"handover": {{"high": {}, "least": {}, "share": {}, "share_with_results": 0}}{}}})", high,
                       least, high / 0.06, high > 0.006 ? R"(, "no_time": "under_resolution")" : "");
  };
  all.take(facts(20e-6, 10e-6));
  all.take(facts(50e-3, 100e-6));
  const std::optional<NoTime> why = all.no_time();
  ASSERT_TRUE(why);
  EXPECT_TRUE(was_busy(*why));
  EXPECT_EQ(why->launch, 2);
  EXPECT_EQ(why->least, 10e-6);
  PooledResolution one;
  one.take(facts(50e-3, 10e-6));
  EXPECT_EQ(one.no_time()->launch, 0) << "there is no other";
}

TEST(PooledResolution, SaysHowManyAreTooShortAlone) {
  EXPECT_EQ(in_words(of({0.05}), "me"), "");
  EXPECT_EQ(in_words(of({0.12, 0.06}), "me"),
            "1 of 2 launches of me would have no time alone; all of them count, and 9 % of its time is the lab's own.");
}

}  // namespace
}  // namespace syslab::cli
