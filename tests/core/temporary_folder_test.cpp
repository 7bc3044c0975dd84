#include "core/files/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/files/remove_tree.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab {
namespace {

namespace fs = std::filesystem;

class HeldFolder : public testing::Test {
 protected:
  void SetUp() override { ::setenv("TMPDIR", (folder_ / ".").c_str(), 1); }
  void TearDown() override { ::unsetenv("TMPDIR"); }

  // As a killed process leaves it.
  fs::path left(const char* name = "syslab-held-000000") {
    fs::create_directory(folder_ / name);
    std::ofstream(folder_ / name / "file") << "left";
    return folder_ / name;
  }

  test::TemporaryFolder folder_;
};

TEST_F(HeldFolder, IsOursAloneAndGoneWithAllThatIsInIt) {
  {
    const TemporaryFolder mine;
    struct stat found {};
    ASSERT_EQ(::stat(mine.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0700U);
    EXPECT_EQ(fs::canonical(fs::path(mine.path()).parent_path()), fs::canonical(folder_ / "."));
    fs::create_directories(mine.path() + "/deep/er");
    std::ofstream(mine.path() + "/deep/er/file") << "text";
  }
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(HeldFolder, OfManyFilesIsLeftToTheNextCleaning) {
  const fs::path many = folder_ / "many";
  for (int i = 0; i < 5000; ++i) fs::create_directories(many / std::to_string(i) / "inner");
  EXPECT_FALSE(remove_tree(many.string(), std::chrono::milliseconds(1)));
  EXPECT_TRUE(fs::exists(many));
  EXPECT_TRUE(remove_tree(many.string()));
  EXPECT_FALSE(fs::exists(many));
}

// As somebody makes it who would rather have it stay.
TEST_F(HeldFolder, IsGoneWhateverWasMadeInIt) {
  test::TemporaryFolder elsewhere;
  std::ofstream(elsewhere / "kept") << "text";
  {
    const TemporaryFolder mine;
    const auto closed = mine.path() + "/closed";
    fs::create_directories(closed + "/in/side");
    std::ofstream(closed + "/file") << "text";
    fs::create_directory_symlink(fs::path(elsewhere / "."), mine.path() + "/link");
    for (const char* folder : {"/in/side", "/in", ""}) fs::permissions(closed + folder, fs::perms::none);
    std::ofstream(mine.path() + "/.removed-1") << "in the way";
    const FileDescriptor top(::open(mine.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int at = ::dup(top.get());
    for (int depth = 0; depth < 600; ++depth) {
      ASSERT_EQ(::mkdirat(at, "d", 0700), 0);
      const int deeper = ::openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      ::close(at);
      at = deeper;
    }
    ::close(at);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit few{256, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    remove_tree(mine.path());
    ::setrlimit(RLIMIT_NOFILE, &before);
  }
  EXPECT_EQ(folder_.names().size(), 1U) << "only what is elsewhere";
  EXPECT_TRUE(fs::exists(elsewhere / "kept"));
}

TEST_F(HeldFolder, WhatAKilledOneLeftIsRemoved) {
  const fs::path abandoned = left(), other = left("somebody-elses");
  EXPECT_EQ(remove_left_folders(), 1);
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(HeldFolder, OneThatIsLockedIsLeftAlone) {
  const fs::path theirs = left();
  const FileDescriptor lock(::open(theirs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  const TemporaryFolder mine;
  EXPECT_EQ(remove_left_folders(), 0);
  EXPECT_TRUE(fs::exists(theirs / "file"));
  EXPECT_TRUE(fs::exists(mine.path()));
}

TEST_F(HeldFolder, ALinkOfItsNameIsNotFollowed) {
  fs::create_directory(folder_ / "kept");
  std::ofstream(folder_ / "kept" / "file") << "kept";
  fs::create_symlink(folder_ / "kept", folder_ / "syslab-held-222222");
  EXPECT_EQ(remove_left_folders(), 0);
  EXPECT_TRUE(fs::exists(folder_ / "kept" / "file"));
}

TEST_F(HeldFolder, WithoutAPlaceForItTheErrorNamesThePlace) {
  ::setenv("TMPDIR", (folder_ / "missing").c_str(), 1);
  try {
    const TemporaryFolder mine;
    FAIL() << "made in a folder that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_NE(std::string(error.what()).find("missing"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace syslab
