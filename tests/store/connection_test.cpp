// What a connection says of a failure.
#include "store/connection.hpp"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>
#include <string_view>

#include "tests/store/fixture.hpp"

namespace syslab::store {
namespace {

using namespace test;

int refuse_journals(const char* path, int flags, int mode) {
  if (!std::string_view(path).ends_with("-journal")) return ::open(path, flags, mode);
  errno = ENOSPC;
  return -1;
}

// While this lives, there is no room for another file.
class NoRoomForJournals {
 public:
  NoRoomForJournals() { set(reinterpret_cast<sqlite3_syscall_ptr>(refuse_journals)); }
  ~NoRoomForJournals() { set(nullptr); }
  NoRoomForJournals(const NoRoomForJournals&) = delete;
  NoRoomForJournals& operator=(const NoRoomForJournals&) = delete;

 private:
  static void set(sqlite3_syscall_ptr function) {
    sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
    vfs->xSetSystemCall(vfs, "open", function);
  }
};

TEST(Connection, AFullDiskIsNoneOfTheNextFailures) {
  const Folder folder;
  Connection db((folder / "a.db").string(), Connection::Access::create, folder / "a.db");
  db.execute("CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES (1)");
  {
    const NoRoomForJournals none;
    const std::string full = error_of(ErrorKind::store, [&] { db.execute("INSERT INTO t VALUES (2)"); });
    EXPECT_NE(full.find("the disk is full"), std::string::npos) << full;
  }
  const std::string again = error_of(ErrorKind::store, [&] { db.execute("INSERT INTO t VALUES (1)"); });
  EXPECT_NE(again.find("UNIQUE"), std::string::npos) << again;
  EXPECT_EQ(again.find("disk"), std::string::npos) << again;
}

}  // namespace
}  // namespace syslab::store
