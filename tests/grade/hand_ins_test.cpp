#include "grade/hand_ins.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/files/temporary_folder.hpp"
#include "grade/surroundings.hpp"

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

TEST(HandIns, AnAtThatNoDateFollowsIsPartOfTheName) {
  const TemporaryFolder temporary;
  const fs::path all = temporary.path();
  for (const char* name : {"bob@uni.edu", "bob@mit.edu", "ada@2", "ada@1", "eve@2026-05-03 late"}) {
    file_of(all / name / "adapters.py", hours(1));
  }
  std::vector<std::string> ids;
  for (const Submission& one : submissions_in(all)) ids.push_back(one.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"ada", "bob_mit.edu", "bob_uni.edu", "eve"}));
}

TEST(HandIns, TwoNamesDoNotBecomeOneStudent) {
  const TemporaryFolder temporary;
  const fs::path all = temporary.path();
  for (const char* name : {"Müller@2026-05-01", "Möller@2026-05-02"}) file_of(all / name / "adapters.py", hours(1));
  try {
    submissions_in(all);
    FAIL() << "one of them has vanished";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("would both be called M__ller, and need not be one"), std::string::npos)
        << error.what();
  }
}

TEST(HandIns, AListIsQuotedInOneLine) {
  const TemporaryFolder temporary;
  const fs::path list = fs::path(temporary.path()) / "list.csv";
  std::ofstream(list) << "student,path\n\"x\nPASS\",a\n";
  try {
    submissions_in(list);
    FAIL() << "that is no name";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("line 2: 'x\\x0aPASS' is no name"), std::string::npos) << error.what();
  }
}

TEST(HandIns, ADateCountsHoweverItGoesOn) {
  const TemporaryFolder temporary;
  file_of(fs::path(temporary.path()) / "eve@2026-05-03 late" / "adapters.py", hours(1));
  EXPECT_EQ(submissions_in(temporary.path()).front().handed_in, "2026-05-03");
}

std::string refusal_of(const fs::path& folder, const std::string& row) {
  const fs::path list = folder / "list.csv";
  std::ofstream(list) << "student,path,when\n" << row << "\n";
  try {
    submissions_in(list);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(HandIns, AListIsRefusedWhereATimeIsNoneOrAPathIsALink) {
  const TemporaryFolder temporary;
  const fs::path all = temporary.path();
  file_of(all / "repos" / "ada" / "adapters.py", hours(1));
  fs::create_directory_symlink("ada", all / "repos" / "linked");
  EXPECT_EQ(refusal_of(all, "ada,repos/ada,2026-05-03T17:00"), "");
  EXPECT_EQ(refusal_of(all, "ada,repos/ada,2"), "");
  EXPECT_EQ(refusal_of(all, "ada,repos/ada,"), "");
  EXPECT_NE(refusal_of(all, "ada,repos/ada,2026-04-30 16:00").find("line 2: '2026-04-30 16:00' is no date; expected"),
            std::string::npos);
  const std::string root = all.string();
  for (const std::string& path :
       {std::string("repos/linked"), std::string("repos/linked/../ada"), std::string("./repos/linked"),
        root + "/repos/linked", root + "/repos/linked/tests"}) {
    EXPECT_NE(refusal_of(all, fmt::format("ada,{},", path)).find("/linked' is a link, and grade follows none"),
              std::string::npos)
        << path;
  }
  EXPECT_EQ(refusal_of(all, fmt::format("ada,{}/repos/ada,", root)), "");
  // What leads to the folder is the instructor's own.
  fs::create_directory_symlink(all, all / "here");
  fs::create_directory(all / "lists");
  EXPECT_EQ(refusal_of(all / "here", fmt::format("ada,{}/here/repos/ada,", root)), "");
  EXPECT_EQ(refusal_of(all / "lists", fmt::format("ada,{}/here/repos/ada,", root)), "");
}

TEST(HandIns, WhatIsLeftOutIsNamed) {
  const TemporaryFolder temporary;
  const fs::path all = temporary.path();
  for (const char* name : {"ada.ZIP", "joe.tar.gz", ".hidden"}) file_of(all / name, hours(1));
  fs::create_symlink(all / "ada.ZIP", all / "eve.zip");
  std::vector<std::string> left_out;
  const std::vector<Submission> found = submissions_in(all, &left_out);
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].id, "ada");
  EXPECT_EQ(left_out, (std::vector<std::string>{".hidden (its name begins with a dot)", "eve.zip (a link)",
                                                "joe.tar.gz (neither a folder nor a zip)"}));
}

TEST(Surroundings, APackageMoreAndAFileOfAnyKindMakeAnotherDigest) {
  const TemporaryFolder temporary;
  const fs::path site = fs::path(temporary.path()) / "site";
  const std::string before = digest_of_surroundings();
  EXPECT_EQ(digest_of_surroundings(), before);
  std::ofstream(file_of(site / "new-1.0.dist-info" / "METADATA", hours(1))) << "Name: new\nVersion: 1.0\n";
  ASSERT_EQ(::setenv("PYTHONPATH", site.c_str(), 1), 0);
  EXPECT_NE(digest_of_surroundings(), before);
  ::unsetenv("PYTHONPATH");
  const std::string files = digest_of_files(site);
  file_of(site / "kernel.ptx", hours(1));
  EXPECT_NE(digest_of_files(site), files);
}

}  // namespace
}  // namespace syslab::grade
