// Texts that are checked in under tests/golden: what a writer makes must be the same to the byte. After a wanted change
// run the test with SYSLAB_UPDATE_GOLDEN=1 and read the difference before committing it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace syslab::golden {

inline void expect(const std::string& name, const std::string& found) {
  const std::filesystem::path path = std::filesystem::path(SYSLAB_SOURCE_ROOT) / "tests/golden" / name;
  if (std::getenv("SYSLAB_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << found;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path << " is missing";
  std::ostringstream wanted;
  wanted << file.rdbuf();
  EXPECT_EQ(found, wanted.str()) << path;
}

}  // namespace syslab::golden
