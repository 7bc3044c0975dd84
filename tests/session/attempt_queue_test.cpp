#include "session/attempt_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/ids.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::cli {
namespace {

using namespace store::test;

class AttemptQueueTest : public ::testing::Test {
 protected:
  AttemptQueueTest() {
    for (int i = 0; i < 100; ++i) planned_[static_cast<std::size_t>(i)].index = i;
  }

  runner::AttemptResult result_of(int index, Status status = Status::skipped) {
    runner::AttemptResult result;
    result.planned = &planned_[static_cast<std::size_t>(index)];
    result.status = status;
    return result;
  }
  std::int64_t stored() { return count(store_, "SELECT count(*) FROM v_attempt WHERE ended_at IS NOT NULL"); }

  std::vector<plan::PlannedCase> planned_ = std::vector<plan::PlannedCase>(100);
  Folder folder_;
  store::Store store_ = store::Store::open(folder_ / "a.db", store::Mode::create);
  store::RowId run_ = store_.begin_run(a_run(), a_plan(100));
  std::vector<int> acknowledged_;
  AttemptQueue queue(std::chrono::milliseconds longest_wait) {
    return AttemptQueue(
        store_, run_,
        [this](const std::string& uid, const runner::AttemptResult& result) {
          EXPECT_EQ(count(store_,
                          "SELECT count(*) FROM v_attempt WHERE attempt_uid = '" + uid + "' AND ended_at IS NOT NULL"),
                    1)
              << "acknowledged before it is stored";
          acknowledged_.push_back(result.planned->index);
        },
        longest_wait);
  }
};

constexpr std::chrono::hours kLong{1};

TEST_F(AttemptQueueTest, WhatIsNotTriedWaitsAndIsAcknowledgedInOrderOnceStored) {
  AttemptQueue patient = queue(kLong);
  patient.add("", result_of(0));
  patient.add("", result_of(1));
  EXPECT_TRUE(acknowledged_.empty());
  EXPECT_EQ(stored(), 0);
  const std::string uid = new_uuid7();
  store_.attempt_started(run_, 2, uid);
  patient.add(uid, result_of(2, Status::ok));
  EXPECT_EQ(acknowledged_, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(stored(), 3);
  patient.add("", result_of(3));
  patient.store_all();
  patient.store_all();
  EXPECT_EQ(acknowledged_, (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(AttemptQueueTest, NothingWaitsForLong) {
  AttemptQueue hasty = queue(std::chrono::milliseconds(10));
  hasty.add("", result_of(0));
  EXPECT_TRUE(acknowledged_.empty());
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  hasty.add("", result_of(1));
  EXPECT_EQ(acknowledged_.size(), 2U);
}

TEST_F(AttemptQueueTest, SixtyFourAreStoredHoweverFastTheyCome) {
  AttemptQueue patient = queue(kLong);
  for (int i = 0; i < 63; ++i) patient.add("", result_of(i));
  EXPECT_TRUE(acknowledged_.empty());
  patient.add("", result_of(63));
  EXPECT_EQ(acknowledged_.size(), 64U);
}

TEST_F(AttemptQueueTest, OneThatCannotBeStoredIsToldAndTheOthersAreAcknowledged) {
  AttemptQueue patient = queue(kLong);
  planned_[1].index = 4711;  // of no planned case
  patient.add("", result_of(0));
  patient.add("", result_of(1));
  patient.add("", result_of(2));
  EXPECT_NE(error_of(ErrorKind::store, [&] { patient.store_all(); }), "");
  EXPECT_EQ(acknowledged_, (std::vector<int>{0, 2}));
  EXPECT_EQ(stored(), 2);
}

}  // namespace
}  // namespace syslab::cli
