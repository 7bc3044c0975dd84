// The first page of a hand-in: what is missing, where most points are, and the command that adds it.
#include "report/first_page.hpp"

#include <gtest/gtest.h>

#include "report/document.hpp"
#include "tests/report/writeup.hpp"

namespace syslab::report {
namespace {

class FirstPageOf : public Writeup {
 protected:
  std::string of(const std::vector<Answered>& problems, const std::vector<Missing>& missing) {
    Document page;
    page.blocks = first_page(fixture_.store(), {.handout = "2025", .standing = "3 of 4", .missing = missing}, problems);
    return write_markdown(page);
  }
};

Answered problem(const std::string& name, std::vector<std::string> open = {}) {
  return {.problem = name, .parts = 2, .open = std::move(open)};
}

constexpr const char* kCommands =
    " `syslab run --handout 2025` runs what a machine "
    "can "
    "of it (`plan` lists it).";

TEST_F(FirstPageOf, SaysHowManyCasesOfWhichProblemsAreToRunAndWhatTheyAreWorth) {
  const std::string text = of({problem("fsdp"), problem("leaderboard")},
                              {{"fsdp", 0.4, 3, 9}, {"leaderboard", 1.26, 1, 1}, {"naive_ddp", 0, 2, 2}});
  EXPECT_TRUE(has(text, std::string("All 4 parts have an answer; 3 of 4. Still to run: Leaderboard (1 of "
                                    "1 case, 1.3 points), FSDP (3 of 9 cases, 0.4 points).") +
                            kCommands))
      << text;
}

TEST_F(FirstPageOf, NamesAProblemOnceWhereItIsOpen) {
  const std::string text = of({problem("one", {"a"}), problem("onetwo")}, {{"one", 2, 1, 1}, {"onetwo", 1, 1, 1}});
  EXPECT_TRUE(has(text, std::string("3 of 4 parts have an answer; 3 of 4. Open: one (a). Still to run: "
                                    "onetwo (1 of 1 case, 1.0 points).") +
                            kCommands))
      << text;
}

TEST_F(FirstPageOf, ListsThreeProblemsAtMost) {
  std::vector<Missing> missing;
  for (const char* name : {"p1", "p2", "p3", "p4", "p5"}) missing.push_back({name, 1, 1, 2});
  EXPECT_TRUE(
      has(of({problem("one")}, missing), "p3 (1 of 2 cases, 1.0 points); less in 2 more problems. `syslab run"));
}

TEST_F(FirstPageOf, HasNoCommandWhereNothingIsMissing) {
  const std::string text = of({problem("one")}, {{"one", 0, 0, 3}});
  EXPECT_TRUE(has(text, "All 2 parts have an answer; 3 of 4.")) << text;
  EXPECT_FALSE(has(text, "syslab run")) << text;
}

}  // namespace
}  // namespace syslab::report
