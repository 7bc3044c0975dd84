// Points whose times are the lab's own, whichever way they end.
#include <gtest/gtest.h>

#include "compare/session.hpp"

namespace syslab::cli {
namespace {

MeasuredPoint point_with(const char* share) {
  MeasuredPoint point;
  point.blocks.resize(2);
  point.resolution[1].take(std::string(R"({"handover": {"high": 1e-5, "share": )") + share +
                           R"(, "share_with_results": 0}, "no_time": "under_resolution"})");
  return point;
}

TEST(RefuseUnresolved, LeavesNoBlocksToMakeAVerdictOf) {
  MeasuredPoint point = point_with("0.5");
  refuse_unresolved(point);
  ASSERT_TRUE(point.failed);
  EXPECT_EQ(point.failed->sides.at(0).side, 'B');
  EXPECT_TRUE(point.blocks.empty());
}

TEST(RefuseUnresolved, AnInterruptedPointKeepsItsBlocksOnlyWhereTheirTimesMayBeTold) {
  for (const bool resolved : {false, true}) {
    MeasuredPoint point = point_with(resolved ? "0.01" : "0.5");
    point.stop = "interrupted";
    point.failed = verdict::incomparable({.cause = verdict::Cause::interrupted});
    refuse_unresolved(point);
    EXPECT_EQ(point.failed->reason.cause, verdict::Cause::interrupted);
    EXPECT_EQ(point.blocks.size(), resolved ? 2U : 0U);
  }
}

}  // namespace
}  // namespace syslab::cli
