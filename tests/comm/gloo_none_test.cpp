// A build without Gloo.
#include <gtest/gtest.h>

#include "comm/gloo/gloo.hpp"
#include "core/error.hpp"

namespace syslab::comm {
namespace {

TEST(GlooAbsent, SaysSo) {
  EXPECT_FALSE(gloo_is_built());
  EXPECT_THROW(connect_gloo("/nowhere", 0, 2, {}), Unsupported);
}

}  // namespace
}  // namespace syslab::comm
