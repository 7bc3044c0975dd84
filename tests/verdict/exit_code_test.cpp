#include "verdict/exit_code.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace syslab {
namespace {

TEST(ExitCode, FollowsThePrecedence4_2_75_1_6_3_5_0) {
  const std::vector<Exit> order{Exit::tool,   Exit::usage,      Exit::requeue, Exit::wrong,
                                Exit::slower, Exit::incomplete, Exit::unclear, Exit::well};
  for (std::size_t strong = 0; strong < order.size(); ++strong) {
    for (std::size_t weak = strong; weak < order.size(); ++weak) {
      EXPECT_EQ(worse(order[strong], order[weak]), order[strong]);
      EXPECT_EQ(worse(order[weak], order[strong]), order[strong]);
    }
  }
}

TEST(ExitCode, HasTheNumbersThatScriptsRelyOn) {
  EXPECT_EQ(static_cast<int>(Exit::well), 0);
  EXPECT_EQ(static_cast<int>(Exit::wrong), 1);
  EXPECT_EQ(static_cast<int>(Exit::usage), 2);
  EXPECT_EQ(static_cast<int>(Exit::incomplete), 3);
  EXPECT_EQ(static_cast<int>(Exit::tool), 4);
  EXPECT_EQ(static_cast<int>(Exit::unclear), 5);
  EXPECT_EQ(static_cast<int>(Exit::slower), 6);
}

TEST(ExitCode, OfErrorsTellsTheCallersFaultsFromOurs) {
  EXPECT_EQ(exit_of(ErrorKind::usage), Exit::usage);
  EXPECT_EQ(exit_of(ErrorKind::config), Exit::usage);
  EXPECT_EQ(exit_of(ErrorKind::store), Exit::tool);
  EXPECT_EQ(exit_of(ErrorKind::internal), Exit::tool);
}

TEST(ExitCode, OfStatusesCountsNoFailureThatIsAnAnswer) {
  for (const Status status : {Status::ok, Status::unsupported, Status::skipped}) {
    EXPECT_EQ(exit_of(status, false), Exit::well);
  }
  EXPECT_EQ(exit_of(Status::check_failed, false), Exit::wrong);
  EXPECT_EQ(exit_of(Status::oom, false), Exit::incomplete);
  EXPECT_EQ(exit_of(Status::oom, true), Exit::well);
  for (const Status status : {Status::timeout, Status::crashed, Status::error, Status::aborted}) {
    EXPECT_EQ(exit_of(status, true), Exit::incomplete);
  }
}

}  // namespace
}  // namespace syslab
