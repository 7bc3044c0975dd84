#include "grade/hand_ins.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/temporary_folder.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

fs::path file_of(const fs::path& path, hours ago) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "x";
  fs::last_write_time(path, fs::file_time_type::clock::now() - ago);
  return path;
}

TEST(HandIns, AFolderIsAsOldAsItsNewestFileAndNotAsItself) {
  const TemporaryFolder temporary;
  const fs::path all = temporary.path();
  file_of(all / "ada" / "tests" / "adapters.py", hours(24 * 40));
  file_of(all / "ada" / "deep" / "inside" / "flash.py", hours(24 * 20));
  file_of(all / "ada" / ".venv" / "new.py", hours(0));  // nobody handed that in
  file_of(all / "bob" / "adapters.py", hours(24 * 30));
  for (const char* folder : {"ada/tests", "ada/deep/inside", "ada/deep", "ada"}) {
    fs::last_write_time(all / folder, fs::file_time_type::clock::now());
  }
  fs::last_write_time(all / "bob", fs::file_time_type::clock::now() - hours(24 * 100));
  const std::vector<Submission> found = submissions_in(all);
  ASSERT_EQ(found.size(), 2);
  EXPECT_LT(found[1].handed_in, found[0].handed_in);
  const TemporaryFolder other;
  file_of(fs::path(other.path()) / "ada.zip", hours(24 * 25));
  EXPECT_LT(submissions_in(other.path()).front().handed_in, found[0].handed_in);
  EXPECT_GT(submissions_in(other.path()).front().handed_in, found[1].handed_in);
}

TEST(HandIns, ThoseThatDoNotCountAreRemembered) {
  const TemporaryFolder temporary;
  const fs::path all = temporary.path();
  for (const char* name : {"ada@2026-05-02", "ada@2026-05-01", "ada@2026-05-03"}) {
    file_of(all / name / "adapters.py", hours(1));
  }
  const std::vector<Submission> found = submissions_in(all);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].path, all / "ada@2026-05-03");
  EXPECT_EQ(found[0].earlier, (std::vector<fs::path>{all / "ada@2026-05-01", all / "ada@2026-05-02"}));
  EXPECT_EQ(found[0].handed_in, "2026-05-03");
}

}  // namespace
}  // namespace syslab::grade
