#include "core/text/path_list.hpp"

#include <gtest/gtest.h>

namespace syslab {
namespace {

TEST(PathList, ComesBackAsItWasWhateverItsPathsHold) {
  const std::vector<std::string> paths{"/a", "/b:c/d", "/e\\f", "/g\\:", ":", "\\"};
  EXPECT_EQ(paths_in(path_list(paths)), paths);
}

TEST(PathList, OfPlainPathsIsAsPathHasIt) {
  EXPECT_EQ(path_list(std::vector<std::string>{"/a", "/b"}), "/a:/b");
  EXPECT_EQ(paths_in(":/a::/b:"), (std::vector<std::string>{"/a", "/b"}));
  EXPECT_TRUE(paths_in("").empty());
}

}  // namespace
}  // namespace syslab
