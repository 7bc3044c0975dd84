// What judged code may not do with files, apart from what Landlock denies.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/judge/walls_of.hpp"

namespace syslab::judge {
namespace {

class WallsOfFiles : public WallsOf {};

TEST_P(WallsOfFiles, FilesKeepTheirModesTimesOwnersAndAttributes) {
  const std::string file = (folder_ / "kept").string();
  std::ofstream(file) << "kept";
  ::chmod(file.c_str(), 0600);
  struct stat before {
  }, after{};
  ::stat(file.c_str(), &before);
  const int refused = GetParam() == Profile::native ? EPERM : 0;  // for Python it is no error, and nothing happens
  EXPECT_EQ(inside([&] { return error_of(::chmod(file.c_str(), 0644)); }), refused);
  EXPECT_EQ(inside([&] { return error_of(::fchmodat(AT_FDCWD, file.c_str(), 0644, 0)); }), refused);
  EXPECT_EQ(inside([&] { return error_of(::fchmod(::open(file.c_str(), O_RDONLY), 0644)); }), refused);
  EXPECT_EQ(inside([&] { return error_of(::utimensat(AT_FDCWD, file.c_str(), nullptr, 0)); }), refused);
  EXPECT_EQ(inside([&] { return error_of(::chown(file.c_str(), ::geteuid(), ::getegid())); }), EPERM);
  EXPECT_EQ(inside([&] { return error_of(::setxattr(file.c_str(), "user.a", "b", 1, 0)); }), EPERM);
  ::stat(file.c_str(), &after);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
}

TEST_P(WallsOfFiles, NobodyIsToldWhatHappensInAFolder) {
  const std::string folder = (folder_ / ".").string();
  EXPECT_EQ(inside([&] { return error_of(::inotify_add_watch(::inotify_init1(0), folder.c_str(), IN_CREATE)); }),
            EPERM);
  EXPECT_EQ(inside([] { return error_of(::fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME, O_RDONLY)); }), EPERM);
}

TEST_P(WallsOfFiles, AFileThatIsReadKeepsNoHintForOthers) {
  const std::string file = (folder_ / "kept").string();
  std::ofstream(file) << "kept";
  const auto asks = [&](int command, std::uint64_t hint) {
    return inside([&] { return error_of(::fcntl(::open(file.c_str(), O_RDONLY), command, &hint)); });
  };
  EXPECT_EQ(asks(F_SET_RW_HINT, RWH_WRITE_LIFE_LONG), EPERM);
  EXPECT_EQ(asks(F_GET_RW_HINT, 0), 0);
}

TEST_P(WallsOfFiles, AFileThatIsReadKeepsItsAttributes) {
  const std::string file = (folder_ / "kept").string();
  std::ofstream(file) << "kept";
  const auto asks = [&](unsigned long request) {
    long flags = 0;
    return inside([&] { return error_of(::ioctl(::open(file.c_str(), O_RDONLY), request, &flags)); });
  };
  EXPECT_EQ(asks(FS_IOC_SETFLAGS), ENOTTY);
  EXPECT_EQ(asks(FS_IOC_FSSETXATTR), ENOTTY);
  EXPECT_EQ(asks(FS_IOC_SETVERSION), ENOTTY);
  EXPECT_EQ(asks(FS_IOC_GETVERSION), ENOTTY);
  EXPECT_EQ(asks(0x50009401UL), ENOTTY);  // a snapshot, on Btrfs
  EXPECT_EQ(asks(FIONREAD), 0);
}

TEST_P(WallsOfFiles, NothingIsOpenedToBeControlledAlone) {
  const auto opens = [](int mode) { return [mode] { return error_of(::open("/dev/null", mode)); }; };
  EXPECT_EQ(inside(opens(O_RDWR)), 0);
  EXPECT_EQ(inside(opens(O_ACCMODE)), EACCES);
  EXPECT_EQ(inside(opens(O_ACCMODE | O_CLOEXEC)), EACCES);
#ifdef SYS_openat2
  EXPECT_EQ(inside([] { return error_of(::syscall(SYS_openat2, AT_FDCWD, "/dev/null", nullptr, 0)); }), ENOSYS);
#endif
}

INSTANTIATE_TEST_SUITE_P(Both, WallsOfFiles, testing::Values(Profile::native, Profile::python),
                         [](const auto& each) { return each.param == Profile::native ? "Native" : "Python"; });

}  // namespace
}  // namespace syslab::judge
