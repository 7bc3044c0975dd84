#include "submission/settings.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "tests/expect_contains.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::submission {
namespace {

class SettingsFile : public testing::Test {
 protected:
  std::filesystem::path folder() const { return folder_ / ""; }

  std::string refusal(const std::string& text) {
    std::ofstream(folder_ / kSettingsFile) << text;
    try {
      read_settings(folder());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "was taken";
  }

  test::TemporaryFolder folder_;
};

RC_GTEST_PROP(Settings, AreReadAsTheyWereWritten, ()) {
  const test::TemporaryFolder folder;
  const auto printable = rc::gen::container<std::string>(rc::gen::inRange(' ', '\x7f'));
  const Settings written{
      .handout = *rc::gen::element<std::string>("2025", "2026"), .mine = "me=" + *printable, .python = *printable};
  write_settings(folder / "", written);
  const std::optional<Settings> read = read_settings(folder / "");
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->handout == written.handout);
  RC_ASSERT(read->mine == written.mine);
  RC_ASSERT(read->python == written.python);
}

TEST_F(SettingsFile, ThatIsNotThereSaysNothing) { EXPECT_FALSE(read_settings(folder())); }

TEST_F(SettingsFile, IsNotOverwritten) {
  write_settings(folder(), {.handout = "2026", .mine = "me=.", .python = ""});
  EXPECT_THROW(write_settings(folder(), {.handout = "2025", .mine = "me=.", .python = ""}), Error);
  EXPECT_EQ(read_settings(folder())->handout, "2026");
  EXPECT_EQ(folder_.names(), std::vector<std::string>{kSettingsFile});
}

TEST_F(SettingsFile, ThatIsWrongIsRefusedByLine) {
  expect_contains(refusal("handout = \"2026\"\nmine = \n"), "syslab.toml, line 2: ");
  expect_contains(refusal("handout = \"2026\"\nmnie = \"me=.\"\n"), "line 2: unknown key 'mnie'; did you mean 'mine'?");
  expect_contains(refusal("handout = 2026\nmine = \"me=.\"\n"), "line 1: 'handout' must be a text in quotation marks");
  expect_contains(refusal("handout = \"2024\"\nmine = \"me=.\"\n"), "there is \"2025\" and \"2026\"");
  expect_contains(refusal("handout = \"2026\"\n"), "'mine' is missing");
}

TEST_F(SettingsFile, IsQuotedInOneLine) {
  expect_contains(refusal("\"x\\nPASS\" = 1\n"), "line 1: unknown key 'x\\x0aPASS'");
  expect_contains(refusal("handout = \"x\\u2028PASS\"\n"), "found \"x\\xe2\\x80\\xa8PASS\"");
  expect_contains(refusal("handout = \"2026\"\nmine = \"me=x\\r\"\n"),
                  "line 2: 'mine' must be one line of text that can be printed, found \"me=x\\x0d\"");
}

}  // namespace
}  // namespace syslab::submission
