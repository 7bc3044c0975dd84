// Comparisons whose sides are several ranks each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runner/paired/paired.hpp"
#include "runner/slowest.hpp"
#include "tests/expect_contains.hpp"
#include "tests/runner/lab.hpp"

namespace syslab::runner {
namespace {

using namespace std::chrono_literals;

struct Pair {
  registry::Experiment ranks;
  PairedSide a, b;
  PairedOptions options;
  Observer observer;

  Pair() {
    ranks.id = "selftest_ranks";
    a = side("A");
    b = side("B");
    options.protocol = "quick";
    options.blocks_per_launch = options.fewest_blocks = 4;
    options.timeout = 30s;
  }

  PairedSide side(const std::string& label, std::int64_t share_us = 500, const std::string& fault = "none",
                  int world_size = 2) const {
    PairedSide made;
    made.label = label;
    made.planned.experiment = &ranks;
    made.planned.params = {
        {"fault", fault}, {"steps", std::int64_t{6}}, {"share_us", share_us}, {"limit_ms", std::int64_t{1000}}};
    made.planned.implementation = "selftest";
    made.planned.case_uid = label;
    made.planned.world_size = world_size;
    made.worker_command = worker_host();
    return made;
  }

  PairedLaunch run() {
    const Interruption interruption;
    PairedLaunch done = run_paired_launch(a, b, 0, options, observer, interruption);
    EXPECT_EQ(workers_alive(), 0);
    return done;
  }
};

TEST(PairedRanks, TakeTurnsAsSidesAndTheSlowestRankIsTheSidesTime) {
  Pair pair;
  pair.b = pair.side("B", 5000);  // ten times the work
  const PairedLaunch launch = pair.run();
  ASSERT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  ASSERT_EQ(launch.blocks.size(), 4U);
  std::map<char, std::vector<double>> turns;
  for (const PairedBlock& block : launch.blocks) {
    EXPECT_GT(block.log_ratio, 0);
    for (std::size_t i = 0; i < 4; ++i) turns[block.order[i]].push_back(block.seconds[i]);
  }
  for (const AttemptResult* result : {&launch.a, &launch.b}) {
    const auto slowest = slowest_of_ranks(result->records);
    ASSERT_EQ(slowest.size(), 1U);
    EXPECT_EQ(slowest[0].values, turns[result == &launch.a ? 'A' : 'B']);
    const Json facts = Json::parse(result->facts_json);
    EXPECT_EQ(facts.at("ranks").size(), 2U);
    EXPECT_EQ(facts.at("paired").at("blocks"), 4);
  }
}

TEST(PairedRanks, CanMeetASideOfOneProcess) {
  Pair pair;
  pair.b = pair.side("B", 500, "none", 1);
  const PairedLaunch launch = pair.run();
  EXPECT_TRUE(launch.complete()) << launch.a.detail << launch.b.detail;
  EXPECT_EQ(launch.blocks.size(), 4U);
}

TEST(PairedRanks, AFaultOfOneRankEndsBothSidesAndNamesIt) {
  Pair pair;
  pair.b = pair.side("B", 500, "crash");
  const PairedLaunch launch = pair.run();
  EXPECT_EQ(to_string(launch.b.status), "crashed");
  expect_contains(launch.b.detail, "rank 1: killed by signal 11");
  EXPECT_EQ(to_string(launch.a.status), "aborted");
  expect_contains(launch.a.detail, "side B ended crashed: nothing to compare with");
  EXPECT_TRUE(launch.blocks.empty());
}

TEST(PairedRanks, ARankThatHangsIsFoundByTheOthers) {
  Pair pair;
  pair.a = pair.side("A", 500, "hang");
  const PairedLaunch launch = pair.run();
  EXPECT_EQ(to_string(launch.a.status), "timeout") << launch.a.detail;
  EXPECT_EQ(to_string(launch.b.status), "skipped");
}

}  // namespace
}  // namespace syslab::runner
