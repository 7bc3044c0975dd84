#include "judge/private_folder.hpp"

#include <gtest/gtest.h>

namespace syslab::judge {
namespace {

TEST(PrivateFolder, EveryCacheIsBelowIt) {
  const PrivateFolder mine;
  const auto told = mine.environment();
  EXPECT_EQ(told.at("TMPDIR"), mine.path());
  for (const auto& [name, place] : told) EXPECT_TRUE(place.starts_with(mine.path())) << name;
}

}  // namespace
}  // namespace syslab::judge
