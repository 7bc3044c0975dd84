#include "judge/landlock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/judge/behind.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::judge {
namespace {

namespace fs = std::filesystem;

int opens(const fs::path& path, int how) { return error_of(::open(path.c_str(), how | O_CLOEXEC, 0600)); }

class Landlock : public testing::Test {
 protected:
  void SetUp() override {
    if (landlock_version() < 3) GTEST_SKIP() << "this kernel's Landlock is of version " << landlock_version();
    for (const char* name : {"own", "hidden", "other"}) {
      fs::create_directories(folder_ / name);
      std::ofstream(folder_ / name / "file") << "kept";
    }
  }

  template <typename Body>
  int inside(const Body& body) {
    const FileDescriptor rules =
        make_ruleset((folder_ / "own").string(), {(folder_ / "hidden").string()}, false, false);
    return behind({.landlock_ruleset = rules.get()}, body);
  }

  test::TemporaryFolder folder_;
};

TEST_F(Landlock, ItsOwnFolderIsWrittenTo) {
  EXPECT_EQ(inside([&] { return opens(folder_ / "own" / "new", O_CREAT | O_WRONLY); }), 0);
  EXPECT_EQ(inside([&] { return error_of(::unlink((folder_ / "own" / "file").c_str())); }), 0);
}

TEST_F(Landlock, OthersAreReadAndNotWrittenTo) {
  const fs::path file = folder_ / "other" / "file";
  EXPECT_EQ(inside([&] { return opens(file, O_RDONLY); }), 0);
  EXPECT_EQ(inside([&] { return opens(file, O_WRONLY); }), EACCES);
  EXPECT_EQ(inside([&] { return error_of(::truncate(file.c_str(), 0)); }), EACCES);
  EXPECT_EQ(inside([&] { return error_of(::unlink(file.c_str())); }), EACCES);
  EXPECT_EQ(inside([&] { return error_of(::mkdir((folder_ / "other" / "new").c_str(), 0700)); }), EACCES);
  EXPECT_EQ(fs::file_size(file), 4U);
}

TEST_F(Landlock, TheHiddenFolderIsNotReadAndItsNeighboursAre) {
  EXPECT_EQ(inside([&] { return opens(folder_ / "hidden" / "file", O_RDONLY); }), EACCES);
  EXPECT_EQ(inside([&] { return opens(folder_ / "hidden" / "." / "file", O_RDONLY); }), EACCES);
  EXPECT_EQ(inside([&] { return opens(folder_ / "own" / ".." / "hidden" / "file", O_RDONLY); }), EACCES);
  EXPECT_EQ(inside([&] { return opens("/etc/passwd", O_RDONLY); }), 0);
}

TEST_F(Landlock, WhatIsHiddenBeforeItIsThereIsNotReadLater) {
  const fs::path folder = folder_ / "later" / "keys";
  const FileDescriptor rules = make_ruleset((folder_ / "own").string(), {folder.string()}, false, false);
  EXPECT_FALSE(fs::exists(folder.parent_path()));
  fs::create_directories(folder);
  std::ofstream(folder / "file") << "kept";
  const auto read = [&](const fs::path& file) {
    return behind({.landlock_ruleset = rules.get()}, [&] { return opens(file, O_RDONLY); });
  };
  EXPECT_EQ(read(folder / "file"), EACCES);
  EXPECT_EQ(read(folder_ / "other" / "file"), 0);
}

TEST_F(Landlock, OfSeveralHiddenFoldersNoneIsReadButForWhatIsShown) {
  fs::create_directories(folder_ / "other" / "shown");
  std::ofstream(folder_ / "other" / "shown" / "file") << "kept";
  const FileDescriptor rules =
      make_ruleset((folder_ / "own").string(), {(folder_ / "hidden").string(), (folder_ / "other").string()}, false,
                   false, (folder_ / "other" / "shown").string());
  const auto read = [&](const fs::path& file) {
    return behind({.landlock_ruleset = rules.get()}, [&] { return opens(file, O_RDONLY); });
  };
  EXPECT_EQ(read(folder_ / "hidden" / "file"), EACCES);
  EXPECT_EQ(read(folder_ / "other" / "file"), EACCES);
  EXPECT_EQ(read(folder_ / "other" / "shown" / "file"), 0);
  EXPECT_EQ(read(folder_ / "own" / "file"), 0);
}

TEST_F(Landlock, OfAnUnlistedFolderNoNameIsTold) {
  const auto lists = [&](const fs::path& folder, const std::vector<std::string>& unlisted) {
    const FileDescriptor rules = make_ruleset((folder_ / "own").string(), {(folder_ / "hidden").string()}, false, false,
                                              (folder_ / "other").string(), unlisted);
    return behind({.landlock_ruleset = rules.get()}, [&] { return opens(folder, O_RDONLY | O_DIRECTORY); });
  };
  const std::vector<std::string> unlisted{(folder_ / "hidden").string()};
  EXPECT_EQ(lists(folder_ / "hidden", {}), 0);
  EXPECT_EQ(lists(folder_ / "hidden", unlisted), EACCES);
  EXPECT_EQ(lists(folder_ / "own", unlisted), 0);
  EXPECT_EQ(lists(folder_ / "other", unlisted), 0);
  EXPECT_EQ(lists("/usr", unlisted), 0);
}

TEST_F(Landlock, ALinkFromTheOwnFolderLeadsNoFurther) {
  fs::create_symlink(folder_ / "other" / "file", folder_ / "own" / "link");
  fs::create_symlink(folder_ / "hidden" / "file", folder_ / "own" / "key");
  EXPECT_EQ(inside([&] { return opens(folder_ / "own" / "link", O_WRONLY); }), EACCES);
  EXPECT_EQ(inside([&] { return opens(folder_ / "own" / "key", O_RDONLY); }), EACCES);
}

TEST_F(Landlock, AFileIsNotMovedOutNorIn) {
  const auto moved = [&](const char* from, const char* to) {
    return inside(
        [&] { return error_of(::rename((folder_ / from / "file").c_str(), (folder_ / to / "moved").c_str())); });
  };
  EXPECT_NE(moved("own", "other"), 0);
  EXPECT_NE(moved("other", "own"), 0);
}

TEST_F(Landlock, WhatProgramsWriteToIsOpen) {
  EXPECT_EQ(inside([] { return opens("/dev/null", O_RDWR); }), 0);
  EXPECT_EQ(inside([] { return opens("/dev/shm/syslab-test-judge", O_CREAT | O_RDWR); }), EACCES);
}

TEST_F(Landlock, NoOtherDeviceIsRead) {
  const std::set<std::string> open_ones{"null", "zero", "full", "random", "urandom"};
  int tried = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev")) {
    const std::string name = entry.path().filename();
    if (entry.is_symlink() || !(entry.is_block_file() || entry.is_character_file())) continue;
    if (open_ones.contains(name) || name.starts_with("nvidia")) continue;
    EXPECT_EQ(inside([&] { return opens(entry.path().string(), O_RDONLY | O_NONBLOCK); }), EACCES) << name;
    ++tried;
  }
  EXPECT_GT(tried, 0);
}

TEST_F(Landlock, SharedMemoryIsOpenWhereAskedFor) {
  const FileDescriptor rules = make_ruleset((folder_ / "own").string(), {}, true, false);
  const std::string name = "/dev/shm/syslab-test-judge-" + std::to_string(::getpid());
  EXPECT_EQ(behind({.landlock_ruleset = rules.get()}, [&] { return opens(name, O_CREAT | O_RDWR); }), 0);
  ::unlink(name.c_str());
}

// However a path outside is spelled, nothing is made there.
RC_GTEST_PROP(LandlockPaths, NoDetourLeadsOutside, ()) {
  RC_PRE(landlock_version() >= 3);
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "own/deep");
  fs::create_directories(folder / "other");
  std::string path = (folder / "own").string();
  for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3))) {
    path += step == 0 ? "/." : step == 1 ? "/deep/.." : "/../own";
  }
  const FileDescriptor rules = make_ruleset((folder / "own").string(), {}, false, false);
  const Confinement walls{.landlock_ruleset = rules.get()};
  RC_ASSERT(behind(walls, [&] { return opens(path + "/../other/made", O_CREAT | O_WRONLY); }) == EACCES);
  RC_ASSERT(behind(walls, [&] { return opens(path + "/made", O_CREAT | O_WRONLY); }) == 0);
}

}  // namespace
}  // namespace syslab::judge
