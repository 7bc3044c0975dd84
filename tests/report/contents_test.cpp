// The contents of a hand-in lead to each problem and each letter, and a problem's table stands beside its answer.
#include "report/contents.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "report/deliverables.hpp"
#include "report/report.hpp"
#include "tests/report/fixture.hpp"
#include "tests/report/tables.hpp"

namespace syslab::report {
namespace {

std::string handed_in(Format format, const std::map<std::string, std::string>& own_words = {}) {
  FixtureStore fixture;
  fixture.add_kernel_run();
  ReportOptions options;
  options.figures = false;
  options.files = true;
  options.format = format;
  options.own_words = own_words;
  return render(fixture_registry(), fixture.store(), options).text;
}

std::vector<std::string> all(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), regex); at != std::sregex_iterator(); ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

// Of the hand-out of 2026: "fsdp" and, where a problem has letters, "fsdp_accounting-a".
std::set<std::string> places() {
  std::set<std::string> wanted;
  for (const Problem& problem : handout_problems()) {
    const auto posed = problem.points.find("2026");
    if (posed == problem.points.end() || posed->second == 0) continue;
    wanted.insert(problem.id);
    for (const Deliverable& part : problem.deliverables) {
      const bool is_asked = part.handout.empty() || part.handout == "2026";
      if (is_asked && !part.part.empty()) wanted.insert(letter_anchor(problem.id, part.part));
    }
  }
  return wanted;
}

void expect_each_once(const std::vector<std::string>& found) {
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()), places());
  EXPECT_EQ(found.size(), places().size());
}

TEST(Contents, LeadToEveryProblemAndLetterInMarkdown) {
  const std::string text = handed_in(Format::markdown);
  expect_each_once(all(text, R"(\]\(#([\w-]+)\))"));
  expect_each_once(all(text, R"re(<a id="([\w-]+)"></a>)re"));
  EXPECT_NE(text.find("\n- Single-GPU memory: [Gradient checkpointing](#gradient_checkpointing) "
                      "[a](#gradient_checkpointing-a) [b](#gradient_checkpointing-b)\n"),
            std::string::npos);
  EXPECT_LT(text.find("](#fsdp)"), text.find("\n## ")) << "above all answers";
}

TEST(Contents, LeadToEveryProblemAndLetterInLatex) {
  const std::string text = handed_in(Format::latex);
  std::vector<std::string> links = all(text, R"(\\syslabentry\{sec:(\w+)\})");
  for (const std::string& letter : all(text, R"(\\syslabletter\{([\w-]+)\})")) links.push_back(letter);
  expect_each_once(links);
  std::vector<std::string> there = all(text, R"(\\label\{sec:(\w+)\})");
  for (const std::string& letter : all(text, R"(\\syslabanchor\{([\w-]+)\})")) there.push_back(letter);
  expect_each_once(there);
}

TEST(Contents, LeadToEveryProblemAndLetterBesideAnHtmlPage) {
  const std::string text = handed_in(Format::html);
  const std::string beside = text.substr(text.find("<nav"), text.find("</nav>") - text.find("<nav"));
  expect_each_once(all(beside, R"re(href="#([\w-]+)")re"));
  expect_each_once(all(text.substr(text.find("<main>")), R"re(<(?:h2|a) id="([\w-]+)")re"));
  EXPECT_NE(beside.find("<li class=\"section\">Single-GPU memory</li>"), std::string::npos);
}

TEST(Contents, AreLeftOutOnATerminal) {
  FixtureStore fixture;
  const std::string text = render(fixture_registry(), fixture.store(), ReportOptions{}).text;
  EXPECT_NE(text.find("## Gradient checkpointing"), std::string::npos);
  EXPECT_EQ(text.find("](#"), std::string::npos);
  EXPECT_EQ(text.find(")**<a id="), std::string::npos);
}

TEST(Contents, LeadToAnswersInOwnWords) {
  const std::string text = handed_in(Format::markdown, {{"fsdp_calcs", "**(c)** Of it.\n\n(a) First.\n\n(a) Again."}});
  EXPECT_NE(text.find("[FSDP calculations](#fsdp_calcs) [a](#fsdp_calcs-a) [b](#fsdp_calcs-b) [c](#fsdp_calcs-c)"),
            std::string::npos);
  EXPECT_NE(text.find("\n<a id=\"fsdp_calcs-a\"></a>(a) First."), std::string::npos) << text;
  expect_each_once(all(text, R"re(<a id="([\w-]+)"></a>)re"));
}

TEST(Contents, KeepProblemsOfASectionTogether) {
  Document document;
  for (const char* name : {"a1", "a2", "b1", "a3"}) {
    document.blocks.emplace_back(Heading{2, plain_text(name), name, {std::string(name, 1), name, {}}});
  }
  document.blocks.emplace_back(Heading{2, plain_text("not listed"), "c"});
  std::string found;
  for (const ListedSection& section : contents_of(document)) {
    found += section.name + ":";
    for (const Heading* problem : section.problems) found += " " + problem->anchor;
    found += "; ";
  }
  EXPECT_EQ(found, "a: a1 a2; b: b1; a: a3; ") << "in the document's order";
}

TEST(HandIn, ATableStandsBehindTheLetterThatItCarries) {
  const std::string text = handed_in(Format::markdown);
  const std::string problem = text.substr(text.find("\n## FlashAttention-2 forward pass"));
  const std::size_t letter = problem.find("\n- **(b)**"), table = problem.find("\n| "),
                    next = problem.find("\n- **(c)**");
  ASSERT_NE(next, std::string::npos) << problem;
  EXPECT_LT(letter, table);
  EXPECT_LT(table, next);
}

TEST(HandIn, AnAnswerInLatexNamesItsTable) {
  const std::string text = handed_in(Format::latex);
  const std::vector<std::string> named = all(text, R"(\\syslabsee\{Table\}\{([\w:]+)\})");
  ASSERT_FALSE(named.empty());
  for (const std::string& label : named) {
    EXPECT_NE(text.find("\\label{" + label + "}"), std::string::npos) << label;
  }
  EXPECT_EQ(handed_in(Format::markdown).find("Table 1"), std::string::npos) << "no numbers there";
}

}  // namespace
}  // namespace syslab::report
