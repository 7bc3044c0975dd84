#include "compare/turns.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

TEST(Turns, UnderTheResolutionHasACodeNoNumbersAndAnExitCodeOfItsOwn) {
  const NoTime why{stats::TimingReason::under_resolution, 77e-6, 64e-6, 64e-6};
  const verdict::Judgement it = under_resolution('B', why);
  EXPECT_EQ(it.verdict, stats::Verdict::incomparable);
  EXPECT_EQ(it.code, stats::TimingReason::under_resolution);
  EXPECT_FALSE(it.seconds_a || it.seconds_b || it.log_ratio || it.low);
  EXPECT_EQ(exit_of(it, false), Exit::unclear);
  EXPECT_NE(words::sentence(it, "a", "me").find("me is too short to time: handing over a call takes up to 64"),
            std::string::npos)
      << words::sentence(it, "a", "me");
  EXPECT_NE(words::sentence(it, "a", "me")
                .find("and a call with it 77.0 us; expected at most a tenth; try: more work in a call"),
            std::string::npos)
      << words::sentence(it, "a", "me");
  const NoTime copied{stats::TimingReason::under_resolution, 77e-6, 5e-6, 64e-6};
  EXPECT_NE(in_words(copied).find("expected at most a tenth for the hand-over, and half with the copying; try: more"),
            std::string::npos)
      << in_words(copied);
}

TEST(Turns, ALongCallOnABusyMachineIsNotTooShort) {
  NoTime why{stats::TimingReason::under_resolution, 65.5e-3, 24e-3, 72.2e-3};
  EXPECT_FALSE(was_busy(why)) << "an older build does not tell the shortest";
  why.least = 10e-6, why.least_with_results = 40e-6, why.launch = 3;
  EXPECT_EQ(words::sentence(under_resolution('A', why), "a", "me").find("too short"), std::string::npos);
  EXPECT_NE(
      words::reason(under_resolution('A', why))
          .find(
              "side A has no time: the machine was busy: in launch 3 handing over a call and copying its results took "
              "up to 72.2 ms, and 40.0 us at the least; expected at most a tenth of the 65.5 ms measured for the "
              "hand-over, and half with the copying; try: a quiet machine, or more work in a call"),
      std::string::npos)
      << words::reason(under_resolution('A', why));
  EXPECT_EQ(under_resolution('A', why).code, stats::TimingReason::under_resolution);
  why.least = 7e-3;
  EXPECT_FALSE(was_busy(why)) << "a tenth of the call even at the shortest";
  why.least = 5e-3, why.with_results = 0, why.least_with_results = 0;
  EXPECT_FALSE(was_busy(why)) << "it hardly scatters";
}

TEST(Turns, KeepTheCallsOfEachSide) {
  const std::vector<runner::PairedBlock> blocks{{0, 0, "ABBA", {1, 2, 3, 4}, 0.5}, {1, 0, "BAAB", {5, 6, 7, 8}, -0.5}};
  const verdict::Turns turns = turns_of(blocks);
  EXPECT_EQ(turns.calls[0], (std::vector<double>{1, 4, 6, 7}));
  EXPECT_EQ(turns.calls[1], (std::vector<double>{2, 3, 5, 8}));
  ASSERT_EQ(turns.blocks.size(), 2u);
  EXPECT_EQ(turns.blocks[1].launch, 1);
  EXPECT_EQ(turns.blocks[1].log_ratio, -0.5);
}

}  // namespace
}  // namespace syslab::cli
