// What tests of the walls share: something is called behind the walls of a profile.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include "judge/walls.hpp"
#include "tests/judge/behind.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::judge {

class WallsOf : public testing::TestWithParam<Profile> {
 protected:
  void SetUp() override {
    if (!missing_walls().empty() && ::prctl(PR_GET_SECCOMP) < 0) GTEST_SKIP() << "this kernel has no seccomp";
  }

  template <typename Body>
  int inside(const Body& body, bool network = false, bool gpu = false, bool listens = false) {
    Walls walls({.profile = GetParam(),
                 .network = network,
                 .gpu = gpu,
                 .listens = listens,
                 .writable = (folder_ / ".").string()});
    return behind(*walls.confinement(), body);
  }

  test::TemporaryFolder folder_;
};

}  // namespace syslab::judge
