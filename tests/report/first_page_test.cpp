// The first page of a hand-in: what is missing, where most points are, and the command that adds it.
#include "report/first_page.hpp"

#include <gtest/gtest.h>

#include "report/document.hpp"
#include "tests/report/writeup.hpp"

namespace syslab::report {
namespace {

class FirstPageOf : public Writeup {
 protected:
  std::string of(const std::vector<Answered>& problems, Missing missing) {
    Document page;
    page.blocks = first_page(fixture_.store(), {.handout = "2025", .standing = "3 of 4", .missing = missing}, problems);
    return write_markdown(page);
  }
};

Answered problem(const std::string& name, std::vector<std::string> open = {}) {
  return {.problem = name, .parts = 2, .open = std::move(open)};
}

TEST_F(FirstPageOf, NamesWhatIsNotMeasuredAndTheProblemsWithMostPointsMissing) {
  const std::string text =
      of({problem("one"), problem("two")},
         {.incomplete = {"one (a)", "two"}, .points = {{"one", 0.4}, {"two", 1.26}, {"three", 0}}});
  EXPECT_TRUE(has(text,
                  "4 of 4 parts have an answer; 3 of 4. Not all measured: one (a), two. Most points are missing in "
                  "two (1.3), one (0.4). `syslab run --handout 2025` measures what this machine can."))
      << text;
}

TEST_F(FirstPageOf, NamesAProblemOnceWhereItIsOpen) {
  const std::string text = of({problem("one", {"a"}), problem("onetwo")},
                              {.incomplete = {"one (a)", "onetwo (b)"}, .points = {{"one", 2}, {"onetwo", 1}}});
  EXPECT_TRUE(
      has(text, " Open: one (a). Not all measured: onetwo (b). Most points are missing in onetwo (1.0). `syslab"))
      << text;
}

TEST_F(FirstPageOf, ListsThreeProblemsAtMost) {
  Missing missing;
  for (const char* name : {"p1", "p2", "p3", "p4", "p5"}) missing.points.push_back({name, 1});
  EXPECT_TRUE(has(of({problem("one")}, missing), "p2 (1.0), p3 (1.0). `syslab"));
}

TEST_F(FirstPageOf, HasNoCommandWhereNothingIsMissing) {
  const std::string text = of({problem("one")}, {.points = {{"one", 0}}});
  EXPECT_TRUE(has(text, "2 of 2 parts have an answer; 3 of 4.")) << text;
  EXPECT_FALSE(has(text, "syslab run")) << text;
}

}  // namespace
}  // namespace syslab::report
