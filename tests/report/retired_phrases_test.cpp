// Phrases that a write-up no longer uses (retired_phrases.txt) are in no header, sentence or word of its SQL, in no
// heading and in no report.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/resources.hpp"
#include "report/deliverables.hpp"
#include "report/report.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {
namespace {

// Small letters, and a space for any run of blanks, of line ends and of the "--" of a comment that goes on.
std::string flat(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool goes_on = text.substr(i).starts_with("\n--   ") || text.substr(i).starts_with("\n// ");
    if (goes_on) i += 2;
    const auto c = static_cast<unsigned char>(text[i]);
    if (goes_on || std::isspace(c) != 0) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else {
      out += static_cast<char>(std::tolower(c));
    }
  }
  return out;
}

std::string file(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::filesystem::path kRoot = SYSLAB_SOURCE_ROOT;

std::vector<std::string> retired() {
  std::ifstream in(kRoot / "tests/report/retired_phrases.txt");
  std::vector<std::string> found;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.front() != '#') found.push_back(line);
  }
  return found;
}

void expect_none(const std::string& where, std::string_view text) {
  const std::string words = flat(text);
  for (const std::string& phrase : retired()) {
    EXPECT_EQ(words.find(phrase), std::string::npos) << where << " says '" << phrase << "', which is retired";
  }
}

TEST(RetiredPhrases, AreFoundAcrossLines) {
  EXPECT_GT(retired().size(), 40U);
  EXPECT_EQ(flat("-- sentence: At this\n--   noise  Nothing"), "-- sentence: at this noise nothing");
}

TEST(RetiredPhrases, AreInNoSql) {
  std::size_t files = 0;
  for (const std::string_view folder : {"experiments/", "reports/"}) {
    for (const Resource& one : resources(std::string(folder))) {
      const std::string path(one.path);
      if (!path.ends_with(".sql") && !path.ends_with(".txt") && !path.ends_with(".json")) continue;
      if (path.ends_with("published.json")) continue;  // quotes others
      expect_none(path, one.text);
      ++files;
    }
  }
  EXPECT_GT(files, 100U);
}

TEST(RetiredPhrases, AreInNoHeading) {
  for (const Problem& problem : handout_problems())
    expect_none(problem.id, problem.title + "\n" + problem.section + "\n" + problem.question);
}

TEST(RetiredPhrases, AreInNoWordOfTheProgram) {
  for (const auto& one : std::filesystem::recursive_directory_iterator(kRoot / "src/report")) {
    if (one.is_regular_file()) expect_none(one.path().filename().string(), file(one.path()));
  }
}

TEST(RetiredPhrases, AreInNoReport) {
  FixtureStore fixture;
  ReportOptions options = everything();
  options.handout.clear();
  options.figures = false;
  expect_none("an empty report", render(fixture_registry(), fixture.store(), options).text);
  fixture.add_smoke_run();
  fixture.add_kernel_run();
  fixture.add_law_run();
  expect_none("a report", render(fixture_registry(), fixture.store(), options).text);
}

}  // namespace
}  // namespace syslab::report
