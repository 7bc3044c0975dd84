// The moment at which ranks leave a barrier together.
#include <gtest/gtest.h>

#include <chrono>

#include "comm/rendezvous/common_start.hpp"
#include "comm/rendezvous/messages.hpp"

namespace syslab::comm {
namespace {

using namespace std::chrono_literals;

std::string arrival(const std::string& system, Clock::time_point when) {
  Packet packet;
  packet << system << static_cast<std::uint64_t>(when.time_since_epoch().count());
  return packet.bytes();
}

TEST(CommonStart, IsHalfAMillisecondAfterTheLastArrivalWhoeverIsAsked) {
  const Clock::time_point now = Clock::now();
  const std::string first = arrival("a", now - 3ms), second = arrival("a", now - 1ms), third = arrival("a", now - 2ms);
  EXPECT_EQ(common_start({first, second, third}), now - 500us);
  EXPECT_EQ(common_start({second, third, first}), now - 500us);
}

TEST(CommonStart, OfThisRankItBeginsWhereItHasArrived) {
  const Clock::time_point before = Clock::now();
  const auto start = common_start({arrival_text(), arrival_text()});
  ASSERT_TRUE(start);
  EXPECT_GE(*start, before + 500us);
  EXPECT_LE(*start, Clock::now() + 500us);
}

TEST(CommonStart, OfSeveralSystemsThereIsNone) {
  EXPECT_EQ(common_start({arrival("a", Clock::now()), arrival("b", Clock::now())}), std::nullopt);
}

TEST(CommonStart, IsAwaitedUnlessItIsTooFarAwayToBeTrue) {
  const Clock::time_point soon = Clock::now() + 500us;
  wait_for_start(soon);
  EXPECT_GE(Clock::now(), soon);
  wait_for_start(Clock::now() - 1h);
  wait_for_start(Clock::now() + 10'000h);
}

}  // namespace
}  // namespace syslab::comm
