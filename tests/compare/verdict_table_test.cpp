#include "compare/verdict_table.hpp"

#include <gtest/gtest.h>

namespace syslab::cli {
namespace {

Console plain() {
  GlobalOptions options;
  options.color = Color::never;
  return Console(options);
}

verdict::Judgement failed(Status status, const std::string& says) {
  verdict::Judgement it = verdict::incomparable({verdict::AboutSide{'B', says}});
  it.failed_b = status;
  return it;
}

// Whoever reads "incomparable" looks for another machine, and not for the bug.
TEST(VerdictTable, WhatIsWrongIsCalledWrong) {
  const std::string wrong = "is wrong: out[3] is 7";
  const std::string text = verdict_table(plain(), {{"f n=16", failed(Status::check_failed, wrong)}}, "pinned", "now");
  EXPECT_NE(text.find(" wrong\n"), std::string::npos) << text;
  EXPECT_NE(text.find("now is wrong: out[3] is 7"), std::string::npos) << text;
  EXPECT_EQ(text.find("incomparable"), std::string::npos) << text;
}

TEST(VerdictTable, CountsOfManyTellWhatCameOfThem) {
  std::vector<VerdictLine> lines(7, {"f", failed(Status::check_failed, "is wrong")});
  lines.push_back({"f", failed(Status::timeout, "side B ended after 20 s")});
  lines.push_back({"f", verdict::incomparable("protocol.version: A 1, B 2")});
  const std::string text = verdict_table(plain(), lines, "", "");
  EXPECT_NE(text.find("B against A, 9 cases: 1 incomparable, 1 timeout, 7 wrong."), std::string::npos) << text;
}

}  // namespace
}  // namespace syslab::cli
