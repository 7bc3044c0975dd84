#include "core/ids.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <regex>
#include <set>
#include <thread>

namespace syslab {
namespace {

TEST(Uuid7, HasTheLayoutOfRfc9562) {
  const std::regex layout("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(std::regex_match(new_uuid7(), layout));
}

TEST(Uuid7, BeginsWithTheTimeInMilliseconds) {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  const std::string uid = new_uuid7();
  const auto stamped = std::stoll(uid.substr(0, 8) + uid.substr(9, 4), nullptr, 16);
  EXPECT_NEAR(static_cast<double>(stamped), static_cast<double>(now), 1000.0);
}

TEST(Uuid7, SortsInTheOrderOfMaking) {
  std::string last = new_uuid7();
  for (int i = 0; i < 20'000; ++i) {  // far more than fit one millisecond's counter
    std::string next = new_uuid7();
    ASSERT_LT(last, next);
    last = std::move(next);
  }
}

TEST(Uuid7, IsUniqueAmongThreads) {
  std::vector<std::vector<std::string>> made(4);
  std::vector<std::thread> threads;
  for (auto& mine : made) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 2000; ++i) mine.push_back(new_uuid7());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const auto& mine : made) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 8000U);
}

TEST(CaseUid, DependsOnExperimentVersionAndEveryParameter) {
  const Params params{{"seq", std::int64_t{128}}, {"causal", true}};
  const std::string uid = case_uid("flash_forward", "1", params);
  EXPECT_EQ(uid.size(), 64U);
  EXPECT_EQ(uid, case_uid("flash_forward", "1", Params{{"causal", true}, {"seq", std::int64_t{128}}}));
  EXPECT_NE(uid, case_uid("flash_backward", "1", params));
  EXPECT_NE(uid, case_uid("flash_forward", "2", params));
  EXPECT_NE(uid, case_uid("flash_forward", "1", Params{{"seq", std::int64_t{128}}, {"causal", false}}));
  // A number and its text are different parameters.
  EXPECT_NE(uid, case_uid("flash_forward", "1", Params{{"seq", "128"}, {"causal", true}}));
}

TEST(CaseUid, StaysWhatStoredDatabasesHold) {
  EXPECT_EQ(case_uid("weighted_sum", "1", Params{{"dim", std::int64_t{64}}, {"dtype", "fp32"}}),
            "0d1def91d08dbe0901d4e267c12a5f4e95afa63410978fe043dd53faa97a888b");
}

}  // namespace
}  // namespace syslab
