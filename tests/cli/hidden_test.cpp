#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/verbs/verbs.hpp"
#include "session/console.hpp"

namespace syslab::cli {
namespace {

// Whether a child that lets something be judged may still be read by it.
int dumpable_then(const char* walls) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("SYSLAB_WALLS", walls, 1);
    ::prctl(PR_SET_DUMPABLE, 1);
    warn_of_missing_walls(Console(GlobalOptions{}));
    ::_exit(::prctl(PR_GET_DUMPABLE));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ALabThatJudges, IsHiddenFromWhatItJudges) {
  EXPECT_EQ(dumpable_then(""), 0);
  EXPECT_EQ(dumpable_then("none"), 1) << "without walls nothing is promised";
}

}  // namespace
}  // namespace syslab::cli
