#include "measure/burst.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "tests/measure/fake_device.hpp"

namespace syslab::measure {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(Burst, IsAsLongAsAskedInWholeCallsFixedForAll) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(3); };
  const Protocol protocol;
  const Subject subject = fake.subject(4);
  Burst burst(protocol, subject, fake.device, fake.clock, 1, milliseconds(20));
  EXPECT_EQ(burst.calls(), 7);
  EXPECT_DOUBLE_EQ(burst.seconds_per_call(), 3e-3);
  fake.duration = [](int) { return milliseconds(9); };  // slower now: the same calls, a longer burst
  const int before = fake.calls;
  EXPECT_DOUBLE_EQ(burst.take().seconds_per_call, 9e-3);
  EXPECT_EQ(fake.calls - before, 7);
}

TEST(Burst, TakesAtLeastOneSample) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(300); };
  const Protocol protocol;
  const Subject subject = fake.subject();
  Burst burst(protocol, subject, fake.device, fake.clock, 1, milliseconds(20));
  EXPECT_EQ(burst.calls(), 1);
  EXPECT_DOUBLE_EQ(burst.take().seconds_per_call, 0.3);
}

TEST(Burst, GroupsShortCallsAndTellsEachSample) {
  FakeLab fake;
  fake.duration = [](int) { return microseconds(50); };
  const Protocol protocol;
  const Subject subject = fake.subject(100);
  Burst burst(protocol, subject, fake.device, fake.clock, 1, milliseconds(1));
  const BurstTime took = burst.take();
  EXPECT_EQ(burst.calls_per_sample(), 4);
  EXPECT_EQ(took.samples.size(), 5U);
  EXPECT_DOUBLE_EQ(took.samples.front(), 50e-6);
}

TEST(Burst, OfAnotherProcessIsAsShortAsTheArgumentsOfItsCallsAreDear) {
  for (const bool others : {true, false}) {
    FakeLab fake;
    fake.duration = [](int) { return microseconds(50); };
    const Protocol protocol;
    Subject subject = fake.subject();
    subject.refresh = [&](int) { fake.clock.advance(milliseconds(30)); };
    if (others) subject.self_time = [] { return microseconds(50); };
    Burst burst(protocol, subject, fake.device, fake.clock, 1, milliseconds(2));
    EXPECT_EQ(burst.calls(), others ? 3 : 40);
    const Nanoseconds began = fake.clock.now();
    EXPECT_DOUBLE_EQ(burst.take().seconds_per_call, 50e-6);
    EXPECT_TRUE(!others || fake.clock.now() - began <= milliseconds(100));
  }
}

// A program that prints 3.3e12 B/s: as a time of one byte that is far below what Nanoseconds hold.
TEST(Burst, WhatAnImplementationReportsIsKeptHoweverSmall) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(2); };
  const Protocol protocol;
  Subject subject = fake.subject();
  double told = 1 / 3e11;
  subject.self_time = [] { return milliseconds(2); };
  subject.self_told = [&] { return told; };
  Burst burst(protocol, subject, fake.device, fake.clock, 1, milliseconds(20));
  EXPECT_EQ(burst.calls(), 10) << "of what a call takes, not of what it says";
  EXPECT_DOUBLE_EQ(burst.take().seconds_per_call, 1 / 3e11);
  told = 1 / 3.3e12;
  EXPECT_DOUBLE_EQ(burst.take().seconds_per_call, 1 / 3.3e12);
}

TEST(Burst, ASampleThatAnotherProcessCutIntoChangesNothing) {
  FakeLab fake;
  int call = 0;
  fake.duration = [&](int) { return milliseconds(++call % 5 == 0 ? 7 : 1); };
  const Protocol protocol;
  const Subject subject = fake.subject();
  Burst burst(protocol, subject, fake.device, fake.clock, 1, milliseconds(15));
  const BurstTime took = burst.take();
  EXPECT_GE(took.samples.size(), 5U);
  EXPECT_EQ(*std::max_element(took.samples.begin(), took.samples.end()), 7e-3);
  EXPECT_DOUBLE_EQ(took.seconds_per_call, 1e-3);
}

TEST(Burst, MeetsFreshContentAtEveryCallAndVerifiesTheFirstOne) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  Protocol protocol;
  protocol.verify_share = 0;
  const Subject subject = fake.subject(3);
  Burst burst(protocol, subject, fake.device, fake.clock, 1, milliseconds(5));
  burst.take();
  EXPECT_EQ(burst.verified(), 1);
  burst.take();
  EXPECT_EQ(burst.verified(), 1) << "one was enough";
  std::map<std::string, bool> stale;
  for (const std::string& event : fake.events) {
    const std::string set = event.substr(event.find(' '));
    if (event.starts_with("call")) {
      EXPECT_FALSE(stale[set]) << "set" << set;
      stale[set] = true;
    } else if (event.starts_with("refresh")) {
      stale[set] = false;
    }
  }
}

TEST(Burst, LeavesWithTheErrorOfAWrongSample) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  Subject subject = fake.subject();
  subject.verify = [](int) -> bool { throw std::runtime_error("wrong"); };
  const Protocol protocol;
  Burst burst(protocol, subject, fake.device, fake.clock, 1, milliseconds(5));
  EXPECT_THROW(burst.take(), std::runtime_error);
}

TEST(Burst, TellsTheClockRateOfADeviceThatKnowsIt) {
  FakeLab fake;
  fake.duration = [](int) { return milliseconds(1); };
  fake.device.clock_rate = [] { return 1.5e9; };
  const Protocol protocol;
  const Subject subject = fake.subject();
  Burst burst(protocol, subject, fake.device, fake.clock, 1, milliseconds(5));
  EXPECT_EQ(burst.take().clock_hz, 1.5e9);
}

}  // namespace
}  // namespace syslab::measure
