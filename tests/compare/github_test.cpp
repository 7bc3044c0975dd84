#include "compare/github.hpp"

#include <gtest/gtest.h>

#include "compare/gate_stored.hpp"

namespace syslab::cli {
namespace {

verdict::Judgement failed(Status status, const std::string& reason) {
  verdict::Judgement it = verdict::incomparable(reason);
  it.failed_b = status;
  return it;
}

// Whoever reads "incomparable" looks for another machine, and not for the bug.
TEST(Github, WhatIsWrongIsCalledWrong) {
  const std::vector<GatedLine> lines{{"function me n=16", failed(Status::check_failed, "out[3] is 7"), "f.py"},
                                     {"function me n=32", failed(Status::timeout, "stopped after 20 s"), {}}};
  EXPECT_EQ(github_annotations(lines, {}),
            "::error file=f.py,title=function me n=16%3A wrong::out[3] is 7\n"
            "::error title=function me n=32%3A timeout::stopped after 20 s\n");
  const std::string page = github_summary("base", lines, {});
  EXPECT_NE(page.find("| wrong: out"), std::string::npos) << page;
  EXPECT_NE(page.find("| timeout: stopped after 20 s |"), std::string::npos) << page;
}

TEST(Github, TheSummarySaysOfASelfReportedPinThatItIs) {
  EXPECT_EQ(self_reported_sentence(std::nullopt), "");
  const std::string told = self_reported_sentence(Arrival{"merge", "hers.db"});
  EXPECT_TRUE(told.starts_with("The pinned run is self-reported: it was merged from 'hers.db'")) << told;
  const std::string page = github_summary("base", {}, {}, told);
  EXPECT_NE(page.find("The pinned run is self"), std::string::npos) << page;
  EXPECT_EQ(github_summary("base", {}, {}).find("self"), std::string::npos);
}

TEST(Github, WhatHasNoVerdictWarnsAndWhatIsWellIsNotAnnotated) {
  verdict::Judgement unclear;
  unclear.reason.cause = verdict::Cause::across_borders;
  verdict::Judgement same;
  same.verdict = stats::Verdict::same;
  EXPECT_EQ(github_annotations({{"a", unclear, {}}, {"b", same, {}}}, {}),
            "::warning title=a%3A unclear::No verdict on now against pinned: the interval reaches across +1 %25.\n");
}

}  // namespace
}  // namespace syslab::cli
