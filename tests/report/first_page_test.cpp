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
    page.blocks =
        first_page(fixture_.store(), {.handout = "2025", .standing = "1 of 4 points", .missing = missing}, problems);
    return write_markdown(page);
  }
};

Answered problem(const std::string& name, std::vector<std::string> open = {}) {
  return {.problem = name, .parts = 2, .open = std::move(open)};
}

constexpr const char* kCommand = " `syslab run --handout 2025` makes those that a machine can.";

TEST_F(FirstPageOf, SaysHowManyCasesOfWhichProblemsAreToRunAndWhatTheyAreWorth) {
  const std::string text = of({problem("fsdp"), problem("leaderboard")},
                              {{"fsdp", 0.4, 3, 9}, {"leaderboard", 1.26, 1, 1}, {"naive_ddp", 0, 2, 2}});
  EXPECT_TRUE(has(text, std::string("All 4 parts have an answer. Measurements not made are worth 1 of 4 points: "
                                    "Leaderboard (1 of 1 cases), FSDP (3 of 9 cases).") +
                            kCommand))
      << text;
}

TEST_F(FirstPageOf, NamesAProblemOnceWhereItIsOpen) {
  const std::string text = of({problem("one", {"a"}), problem("onetwo")}, {{"one", 2, 1, 1}, {"onetwo", 1, 1, 1}});
  EXPECT_TRUE(has(text, std::string("3 of 4 parts have an answer. Open: one (a). Measurements not made are worth 1 of "
                                    "4 points: onetwo (1 of 1 cases).") +
                            kCommand))
      << text;
}

TEST_F(FirstPageOf, ListsThreeProblemsAtMost) {
  std::vector<Missing> missing;
  for (const char* name : {"p1", "p2", "p3", "p4", "p5"}) missing.push_back({name, 1, 1, 2});
  EXPECT_TRUE(has(of({problem("one")}, missing), "p3 (1 of 2 cases), less in 2 more problems. `syslab run"));
}

TEST_F(FirstPageOf, HasNoCommandWhereNothingIsMissing) {
  const std::string text = of({problem("one")}, {{"one", 0, 0, 3}});
  EXPECT_TRUE(has(text, "All 2 parts have an answer. Measurements not made are worth 1 of 4 points.")) << text;
  EXPECT_FALSE(has(text, "syslab run")) << text;
}

TEST_F(FirstPageOf, SaysWhichMachineRanOneExperimentAlone) {
  const auto ran = [&](const std::string& experiment, const std::string& gpu) {
    add(experiment, model_step(), "fused", {timed("time", 1e-3)}, {.machine = gpu, .gpu = gpu});
  };
  ran("benchmarking_script", "A_GPU");
  ran("memory_profiling", "A_GPU");
  ran("flash_benchmarking", "B_GPU");
  const std::string text = of({problem("one")}, {});
  EXPECT_TRUE(has(text, "Measured on A_GPU, B_GPU (`flash_benchmarking` alone), all with Example_CPU 9000")) << text;
}

}  // namespace
}  // namespace syslab::report
