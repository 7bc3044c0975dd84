#include "stats/timing_warning.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace syslab::stats {
namespace {

const std::vector<TimingWarning> kEach{
    {WarningCode::arguments_repeat, {}, "x", 0.97},         {WarningCode::rows_equal, {}, "x", 0.99},
    {WarningCode::reference_shares_code, {}, "mine.py", 0}, {WarningCode::library_patched, {}, "numpy.exp", 0},
    {WarningCode::forward_untimed, "me", {}, 3e-3},         {WarningCode::results_copied, "me", {}, 0.4},
    {WarningCode::argument_constant, {}, "mask", 0},        {WarningCode::left_running, {}, "./bench.sh", 2},
    {WarningCode::bound_exceeds_values, {}, "out", 1},      {WarningCode::terms_exceed_inputs, {}, "4096", 1e15},
    {WarningCode::elements_unjudged, "me", "out", 0.026},   {WarningCode::ties_differ, "me", "place", 0.125}};

TEST(TimingWarning, TravelsAsJson) { EXPECT_EQ(warnings_from_json(to_json(kEach)), kEach); }

TEST(TimingWarning, EachHasASentenceThatNamesWhatItIsAbout) {
  for (const TimingWarning& one : kEach) {
    const std::string text = sentence(one);
    EXPECT_NE(text.find(one.about.empty() ? one.side : one.about), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(".")) << text;
  }
}

TEST(TimingWarning, ASmallPartKeepsADigit) {
  EXPECT_EQ(percent_of(0.026), "2.6 %");
  EXPECT_EQ(percent_of(0.502), "50 %");
}

TEST(TimingWarning, WhatAStrangersListHasBesidesIsLeftOut) {
  const Json list{
      1, "x", {{"code", 7}}, {{"code", "of_tomorrow"}}, {{"code", "rows_equal"}, {"about", 3}, {"number", "n"}}};
  const std::vector<TimingWarning> read = warnings_from_json(list);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0], (TimingWarning{WarningCode::rows_equal, {}, {}, 0}));
  EXPECT_TRUE(warnings_from_json("no list").empty());
}

TEST(TimingWarning, AStrangersTextMovesNoCursor) {
  const std::vector<TimingWarning> read = warnings_from_json({{{"code", "library_patched"}, {"about", "\x1b[2J"}}});
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].about.find('\x1b'), std::string::npos);
}

TEST(TimingWarning, OfTheSameTheLargerNumberStays) {
  std::vector<TimingWarning> all;
  add_warnings(all, {{WarningCode::rows_equal, {}, "x", 0.5}});
  add_warnings(all, {{WarningCode::rows_equal, {}, "x", 0.9}, {WarningCode::rows_equal, {}, "y", 0.6}});
  add_warnings(all, {{WarningCode::rows_equal, {}, "x", 0.7}});
  EXPECT_EQ(all, (std::vector<TimingWarning>{{WarningCode::rows_equal, {}, "x", 0.9},
                                             {WarningCode::rows_equal, {}, "y", 0.6}}));
}

}  // namespace
}  // namespace syslab::stats
