#include "core/files/secret.hpp"

#include <gtest/gtest.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/files/state_folder.hpp"

namespace syslab {
namespace {

namespace fs = std::filesystem;

class StateFolder : public testing::Test {
 protected:
  StateFolder() {
    base_ = (fs::temp_directory_path() / "syslab-state-XXXXXX").string();
    EXPECT_NE(::mkdtemp(base_.data()), nullptr);
    ::setenv("XDG_STATE_HOME", base_.c_str(), 1);
  }
  ~StateFolder() override {
    ::unsetenv("XDG_STATE_HOME");
    fs::remove_all(base_);
  }
  fs::path folder() const { return fs::path(base_) / "syslab"; }
  fs::path key() const { return folder() / "launch.key"; }

  static unsigned mode_of(const fs::path& path) {
    struct stat there {};
    EXPECT_EQ(::lstat(path.c_str(), &there), 0) << path;
    return there.st_mode & 0777U;
  }
  // What it says where it refuses.
  static std::string refusal(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return {};
  }
  static std::string refused_key() {
    return refusal([] { secret("launch"); });
  }

  std::string base_;
};

TEST_F(StateFolder, IsMadeForThisUserAlone) {
  EXPECT_EQ(state_folder(), folder());
  EXPECT_EQ(mode_of(folder()), 0700U);
}

TEST_F(StateFolder, LiesInTheHomeFolderUnlessToldOtherwise) {
  const std::string home = ::getenv("HOME") == nullptr ? "" : ::getenv("HOME");
  ::unsetenv("XDG_STATE_HOME");
  ::setenv("HOME", base_.c_str(), 1);
  EXPECT_EQ(state_folder(), fs::path(base_) / ".local/state/syslab");
  ::setenv("XDG_STATE_HOME", "relative/path", 1);
  EXPECT_EQ(state_folder(), fs::path(base_) / ".local/state/syslab");
  ::setenv("HOME", home.c_str(), 1);
}

TEST_F(StateFolder, TheOnesOfOtherVariablesAreKnownToo) {
  const passwd* const entry = ::getpwuid(::geteuid());
  if (entry == nullptr) GTEST_SKIP() << "this user is in no list";
  const std::string home = ::getenv("HOME") == nullptr ? "" : ::getenv("HOME");
  const fs::path of_user = fs::path(entry->pw_dir) / ".local/state/syslab";
  ::setenv("HOME", "/of/home", 1);
  const fs::path of_home = "/of/home/.local/state/syslab";
  EXPECT_EQ(state_folder_paths(), (std::vector<fs::path>{folder(), of_home, of_user}));
  ::unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(state_folder_paths(), (std::vector<fs::path>{of_home, of_user}));
  ::unsetenv("HOME");
  EXPECT_EQ(state_folder_paths(), (std::vector<fs::path>{of_user}));
  if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
}

TEST_F(StateFolder, ThatOthersMayEnterIsRefusedWithTheRemedy) {
  fs::create_directories(folder());
  ASSERT_EQ(::chmod(folder().c_str(), 0755), 0);
  EXPECT_NE(refused_key().find("lets others in (mode 755): chmod 700"), std::string::npos);
  EXPECT_FALSE(fs::exists(key()));
}

TEST_F(StateFolder, ThatIsALinkIsRefused) {
  fs::create_directories(fs::path(base_) / "elsewhere");
  fs::create_directory_symlink(fs::path(base_) / "elsewhere", folder());
  EXPECT_NE(refused_key().find("is a symbolic link"), std::string::npos);
}

TEST_F(StateFolder, ThatCannotBeMadeIsNamed) {
  std::ofstream(fs::path(base_) / "file") << "in the way";
  ::setenv("XDG_STATE_HOME", (base_ + "/file").c_str(), 1);
  EXPECT_NE(refused_key().find(base_ + "/file/syslab"), std::string::npos);
}

TEST_F(StateFolder, KeepsASecretThatOnlyThisUserReads) {
  const Key made = secret("launch");
  EXPECT_EQ(mode_of(key()), 0600U);
  EXPECT_EQ(fs::file_size(key()), sizeof(Key));
  EXPECT_EQ(secret("launch"), made);
  EXPECT_NE(secret("other"), made);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), {}), 2);  // no draft is left
}

TEST_F(StateFolder, GivesOneSecretToAllThatMakeItAtOnce) {
  for (int round = 0; round < 20; ++round) {
    fs::remove_all(folder());
    std::vector<Key> keys(8);
    {
      std::vector<std::jthread> makers;
      for (Key& key : keys) makers.emplace_back([&key] { key = secret("launch"); });
    }
    EXPECT_EQ(std::set<Key>(keys.begin(), keys.end()).size(), 1U);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder()), {}), 1);
  }
}

TEST_F(StateFolder, RefusesAKeyThatOthersMayHaveRead) {
  secret("launch");
  ASSERT_EQ(::chmod(key().c_str(), 0640), 0);
  EXPECT_NE(refused_key().find("may be used by others (mode 640)"), std::string::npos);
}

TEST_F(StateFolder, RefusesAKeyThatIsALink) {
  secret("other");
  fs::create_symlink(folder() / "other.key", key());
  EXPECT_NE(refused_key().find("is a symbolic link"), std::string::npos);
}

TEST_F(StateFolder, RefusesAKeyThatIsCutShortOrNoFile) {
  secret("launch");
  fs::resize_file(key(), 31);
  EXPECT_NE(refused_key().find("is no plain file of 32 bytes"), std::string::npos);
  fs::remove(key());
  ASSERT_EQ(::mkfifo(key().c_str(), 0600), 0);
  EXPECT_NE(refused_key().find("is no plain file of 32 bytes"), std::string::npos);
}

TEST_F(StateFolder, RefusesAKeyOfSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  secret("launch");
  ASSERT_EQ(::chown(key().c_str(), 12345, 12345), 0);
  EXPECT_NE(refused_key().find("belongs to user 12345"), std::string::npos);
  fs::remove(key());
  ASSERT_EQ(::chown(folder().c_str(), 12345, 12345), 0);
  EXPECT_NE(refused_key().find("belongs to user 12345"), std::string::npos);
}

}  // namespace
}  // namespace syslab
