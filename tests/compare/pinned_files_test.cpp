#include "compare/pinned_files.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace syslab::cli {
namespace {

PinnedFile file_of(const std::string& path, const std::string& name, const std::string& digest) {
  PinnedFile file;
  file.now = submitted_of("me", path, name);
  file.now.digest = digest;
  file.pinned_digest = "aaaaaaaaaaaaaaaa";
  return file;
}

std::string refusal(const std::vector<PinnedFile>& files) {
  try {
    require_pinned_files("0193", files);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(PinnedFiles, OneThatChangedIsRefusedWithBothDigestsAndTheComparisonOfBothFiles) {
  const std::string told = refusal({file_of("/x/f.py", "fn", "bbbbbbbbbbbbbbbb")});
  EXPECT_TRUE(told.starts_with("me, '/x/f.py:fn', had digest aaaaaaaaaaaa in run 0193 and has bbbbbbbbbbbb now; "))
      << told;
  EXPECT_NE(told.find("\ntry: "), std::string::npos) << told;
  EXPECT_NE(told.find("--mine old=OLD.py:fn --mine new=/x/f.py:fn A:mine=old B:mine=new"), std::string::npos) << told;
}

TEST(PinnedFiles, ACommandThatChangedIsComparedByCommands) {
  const std::string told = refusal({file_of("in /x: ./bench {n}", "", "bbbbbbbbbbbbbbbb")});
  EXPECT_TRUE(told.starts_with("me, the command './bench {n}' with the files that its words name, had digest")) << told;
  EXPECT_NE(told.find("--command old=OLD --command new='./bench {n}'"), std::string::npos) << told;
}

TEST(PinnedFiles, AmongSeveralOnlyThoseThatChangedAreNamed) {
  PinnedFile same = file_of("/x/g.py", "ref", "aaaaaaaaaaaaaaaa");
  same.now.name = "reference";
  const std::vector<PinnedFile> both{same, file_of("/x/f.py", "fn", "bbbbbbbbbbbbbbbb")};
  EXPECT_EQ(changed_files(both).size(), 1U);
  EXPECT_EQ(refusal(both).find("reference"), std::string::npos) << refusal(both);
}

TEST(PinnedFiles, UnchangedFilesAreTakenAndItIsSaidWhatIsCompared) {
  const std::vector<PinnedFile> files{file_of("/x/f.py", "fn", "aaaaaaaaaaaaaaaa")};
  EXPECT_EQ(refusal(files), "");
  EXPECT_EQ(refusal({}), "");
  EXPECT_TRUE(what_build_compares(files).starts_with("Both programs measure me as pinned"));
  EXPECT_EQ(what_build_compares({}), "");
}

TEST(PinnedFiles, TheHintNamesBuildOnlyIfNoFileChanged) {
  EXPECT_NE(hint_of_turns({}).find("--build"), std::string::npos);
  EXPECT_NE(hint_of_turns({file_of("/x/f.py", "fn", "aaaaaaaaaaaaaaaa")}).find("--build"), std::string::npos);
  const std::string told = hint_of_turns({file_of("/x/f.py", "fn", "bbbbbbbbbbbbbbbb")});
  EXPECT_EQ(told.find("--build"), std::string::npos) << told;
  EXPECT_NE(told.find("--mine old=OLD.py:fn"), std::string::npos) << told;
}

}  // namespace
}  // namespace syslab::cli
