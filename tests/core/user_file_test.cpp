// Files that a user names: what is refused, and that nothing else is touched.
#include "core/files/user_file.hpp"

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "core/error.hpp"

namespace syslab {
namespace {

namespace fs = std::filesystem;

class UserFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "syslab_user_file_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  static std::string bytes_of(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

template <typename Act>
std::string refusal(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "not refused";
}

TEST_F(UserFile, IsReadWholeUpToItsLimit) {
  const fs::path file = write("a.log", "12345678");
  EXPECT_EQ(read_user_file(file, 8), "12345678");
  EXPECT_NE(refusal([&] { read_user_file(file, 7); }).find("more than the 7 B"), std::string::npos);
}

TEST_F(UserFile, ThatWouldMakeUsWaitOrNeverEndIsNotRead) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_NE(refusal([&] { read_user_file(fifo, 100); }).find("it is a FIFO"), std::string::npos);
  EXPECT_NE(refusal([&] { read_user_file("/dev/zero", 100); }).find("it is a device"), std::string::npos);
  EXPECT_NE(refusal([&] { read_user_file(folder_, 100); }).find("it is a folder"), std::string::npos);
  EXPECT_NE(refusal([&] { read_user_file(folder_ / "none", 100); }).find("No such file"), std::string::npos);
}

TEST_F(UserFile, TakesItsPlaceWholeOrNotAtAll) {
  const fs::path file = write("report.md", "old");
  {
    FileInMaking given_up(file, "new");
    EXPECT_EQ(bytes_of(file), "old");
  }
  EXPECT_EQ(bytes_of(file), "old");
  EXPECT_EQ(files(), 1U);
  FileInMaking(file, "new").place();
  EXPECT_EQ(bytes_of(file), "new");
  EXPECT_EQ(files(), 1U);
}

mode_t mode_of(const fs::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

TEST_F(UserFile, IsPrivateWhereNewAndKeepsTheModeThatItHad) {
  const mode_t before = ::umask(0);
  FileInMaking(folder_ / "new.md", "text").place();
  EXPECT_EQ(mode_of(folder_ / "new.md"), 0600U);
  for (const mode_t mode : {0600U, 0640U, 0644U, 0755U}) {
    const fs::path file = write("old.md", "old");
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    FileInMaking(file, "new").place();
    EXPECT_EQ(mode_of(file), mode);
  }
  ::umask(before);
}

TEST_F(UserFile, ReplacesWhatALinkNames) {
  fs::create_symlink("target.md", folder_ / "link.md");
  FileInMaking(folder_ / "link.md", "text").place();
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.md"));
  EXPECT_EQ(bytes_of(folder_ / "target.md"), "text");
}

TEST_F(UserFile, NeverTakesThePlaceOfADatabase) {
  const std::string database("SQLite format 3\0 and pages", 26);
  const fs::path file = write("other.db", database);
  fs::create_symlink("other.db", folder_ / "link.md");
  for (const char* name : {"other.db", "link.md"}) {
    EXPECT_NE(refusal([&] { FileInMaking(folder_ / name, "text"); }).find("it is an SQLite database"),
              std::string::npos);
  }
  EXPECT_EQ(bytes_of(file), database);
}

TEST_F(UserFile, NeverTakesThePlaceOfWhatCannotBeRead) {
  const fs::path file = write("other.db", "anything");
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(file, fs::perms::owner_write | fs::perms::others_write);
  ::setfsuid(65534);  // root reads every file
  const std::string refused = refusal([&] { FileInMaking(file, "text"); });
  ::setfsuid(::geteuid());
  EXPECT_NE(refused.find("you may not read it"), std::string::npos) << refused;
  EXPECT_EQ(bytes_of(file), "anything");
}

TEST_F(UserFile, NeverTakesThePlaceOfWhatIsKept) {
  const fs::path kept = write("lab.db", "");  // as a writer that has just begun leaves it
  fs::create_hard_link(kept, folder_ / "again.md");
  fs::create_symlink("lab.db", folder_ / "link.md");
  for (const char* name : {"lab.db", "again.md", "link.md"}) {
    EXPECT_NE(refusal([&] { FileInMaking(folder_ / name, "text", {kept}); }).find("the database in use"),
              std::string::npos)
        << name;
  }
  const fs::path log = folder_ / "lab.db-wal";  // not there yet
  EXPECT_NE(refusal([&] { FileInMaking(log, "text", {kept, log}); }).find("the database in use"), std::string::npos);
  EXPECT_EQ(bytes_of(kept), "");
}

TEST_F(UserFile, OnADiskThatIsFullReadOnlyOrFailingIsNoMistakeOfTheCommand) {
  for (const int error : {ENOSPC, EDQUOT, EROFS, EIO}) {
    EXPECT_EQ(kind_of_write_error(error), ErrorKind::internal) << error;
    EXPECT_EQ(kind_of_write_error(error, ErrorKind::config), ErrorKind::internal) << error;
  }
  for (const int error : {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM}) {
    EXPECT_EQ(kind_of_write_error(error), ErrorKind::usage) << error;
    EXPECT_EQ(kind_of_write_error(error, ErrorKind::config), ErrorKind::config) << error;
  }
}

TEST_F(UserFile, NeverTakesThePlaceOfAFifoOrADevice) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_NE(refusal([&] { FileInMaking(fifo, "text"); }).find("it is a FIFO"), std::string::npos);
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_NE(refusal([&] { FileInMaking("/dev/null", "text"); }).find("it is a device"), std::string::npos);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace syslab
