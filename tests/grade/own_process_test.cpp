#include "grade/own_process.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "core/files/temporary_folder.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;

class OwnFolderTest : public testing::Test {
 protected:
  OwnFolderTest() {
    fs::create_directories(handed_in_ / "tests");
    std::ofstream(handed_in_ / "tests" / "adapters.py") << "x = 1\n";
  }

  void link(const char* name, const fs::path& target) const { fs::create_symlink(target, handed_in_ / name); }

  const TemporaryFolder folder_;
  const fs::path handed_in_ = fs::path(folder_.path()) / "ada";
  const OwnFolder own_{folder_.path(), "1", ""};
};

TEST_F(OwnFolderTest, LeavesOutLinksToNothing) {
  link("weights", "/of/somebody/else");
  link("data", "../that/is/not/there");
  link("later", "weights");
  EXPECT_EQ(own_.take(handed_in_), (std::vector<std::string>{"data", "later", "weights"}));
  EXPECT_TRUE(fs::is_regular_file(own_.code() / "tests" / "adapters.py"));
  for (const char* name : {"data", "later", "weights"})
    EXPECT_FALSE(fs::exists(fs::symlink_status(own_.code() / name)));
}

TEST_F(OwnFolderTest, RefusesLinksToAnythingAtAll) {
  for (const char* target : {"/etc", "/etc/passwd", "tests", "tests/adapters.py", "itself"}) {
    fs::remove(handed_in_ / "itself");
    link("itself", target);
    const OwnFolder own(folder_.path(), "2", "");
    EXPECT_THROW(own.take(handed_in_), Error) << target;
    EXPECT_FALSE(fs::exists(fs::symlink_status(own.code() / "itself"))) << target;
  }
}

TEST_F(OwnFolderTest, WhatIsCopiedCanBeReadByItsOwner) {
  const fs::path file = handed_in_ / "tests" / "adapters.py";
  fs::permissions(file, fs::perms::none);
  if (!std::ifstream(file)) GTEST_SKIP() << "only root can read a file of mode 0";
  own_.take(handed_in_);
  EXPECT_EQ(fs::status(own_.code() / "tests" / "adapters.py").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace syslab::grade
