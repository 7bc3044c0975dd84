#include "session/progress.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "session/console.hpp"
#include "session/context.hpp"
#include "session/summary.hpp"

namespace syslab::cli {
namespace {

using std::chrono::seconds;

registry::Experiment an_experiment() {
  return registry::experiment("flash_forward")
      .title("t")
      .axis("seq", {std::int64_t{1}}, "")
      .runs([](worker::CaseContext&) {});
}

// Four cases and, after them, a law.
plan::Plan a_plan(const registry::Experiment& experiment) {
  plan::Plan plan;
  for (int i = 0; i < 5; ++i) {
    plan::PlannedCase planned;
    planned.index = i;
    planned.experiment = &experiment;
    planned.implementation = "tiled";
    planned.case_uid = "case" + std::to_string(i);
    planned.params = Params{{"seq", std::int64_t{i}}};
    if (i == 4) planned.task = plan::Task::law, planned.law = "a.law";
    plan.cases.push_back(planned);
  }
  return plan;
}

void predict(plan::PlannedCase& planned, Nanoseconds time, bool measured) {
  planned.predicted_time = time;
  planned.predicted_from = measured ? "measured 1 day ago" : "estimated";
  planned.time_was_measured = measured;
}

TEST(Summary, FoldsLawsThatFoundTheSameOfOneImplementation) {
  const auto law = [](const char* name, const char* detail, Finding finding = {}, const char* implementation = "me") {
    return Concern{name, "check_failed",  detail,      "syslab replay", implementation,
                   name, "flash_forward", Exit::wrong, finding};
  };
  const Finding changes_q{.kind = FindingKind::input_changed, .about = "q"},
      changes_k{.kind = FindingKind::input_changed, .about = "k"}, no_mask{.cause = "no mask at all"},
      scale{.cause = "another scale"}, of_one{.input = "B=1", .first_wrong = "out[0]"},
      of_two{.input = "B=2", .first_wrong = "out[0]"};
  const std::vector<std::vector<Concern>> groups =
      folded({law("a", "killed by signal 11\ninput: B=1"), law("b", "out[0]: found 1"), law("c", "killed by signal 11"),
              law("d", "killed by signal 11", {}, "other"), law("e", ""), law("f", ""), law("g", "out: NaN", of_one),
              law("h", "lse: NaN", of_one), law("i", "out: NaN at last", of_two), law("j", "lse: 2", {.input = "B=1"}),
              law("k", "'q', 16 of 16 elements", changes_q), law("l", "'q', 8 of 32 elements", changes_q),
              law("m", "'k', 8 of 32 elements", changes_k), law("n", "out: 1", no_mask), law("o", "lse: 3", no_mask),
              law("p", "lse: 3", scale),
              // What is judged may have written a text: it has no part in what is grouped by a cause.
              law("q", "raised\nlooks like no mask at all: "),
              Concern{"case", "check_failed", "killed by signal 11", "", "me", "", "flash_forward", Exit::wrong}});
  std::vector<std::string> names;
  for (const std::vector<Concern>& group : groups) {
    names.emplace_back();
    for (const Concern& one : group) names.back() += one.label;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"ac", "b", "d", "e", "f", "gh", "i", "j", "kl", "m", "no", "p", "q", "case"}));
}

TEST(Summary, NamesTheExperimentOfEachLawThatSaysTheSame) {
  const auto law = [](const char* experiment, const char* name) {
    return Concern{.law = name, .experiment = experiment};
  };
  EXPECT_EQ(others_of({law("naive_ddp", "ddp.waits"), law("naive_ddp", "ddp.tied"), law("overlap", "ddp.waits"),
                       law("overlap", "ddp.tied"), law("naive_ddp", "ddp.order")}),
            "ddp.tied, ddp.order, of overlap: ddp.waits, ddp.tied");
}

std::string printed(const Summary& summary, bool json) {
  const registry::Registry registry;
  GlobalOptions global;
  global.json = json;
  const Console console(global);
  testing::internal::CaptureStdout();
  summary.print({registry, global, console, {}}, seconds(1), true);
  return testing::internal::GetCapturedStdout();
}

// What the plan leaves out and what this machine cannot run are two things.
TEST(Summary, TellsSkippedAndUnsupportedCasesByTheirOwnNames) {
  const registry::Experiment experiment = an_experiment();
  plan::PlannedCase planned = a_plan(experiment).cases[0];
  planned.skip_reason = "a reason";
  Summary summary("a-run");
  summary.add(planned, Status::skipped, "the oracle computes in fp64", "");
  for (int i = 0; i < 2; ++i) summary.add(planned, Status::unsupported, "needs 2 GPUs", "");
  summary.add(planned, Status::skipped, "needs 2 GPUs", "");
  const std::string text = printed(summary, false);
  for (const char* line : {"\n  1 skipped: the oracle computes in fp64\n", "\n  1 skipped: needs 2 GPUs\n",
                           "\n  2 unsupported: needs 2 GPUs\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_EQ(parse_json(printed(summary, true)).at("skips"),
            Json({{"skipped", {{"needs 2 GPUs", 1}, {"the oracle computes in fp64", 1}}},
                  {"unsupported", {{"needs 2 GPUs", 2}}}}));
}

// A submission's exception with a command for the reader to run again.
TEST(Summary, MarksWhatAJudgedMessageSaysBelowItsFirstLine) {
  const registry::Experiment experiment = an_experiment();
  Summary summary("a-run");
  for (const int number : {0, 4}) {
    summary.add(a_plan(experiment).cases[static_cast<std::size_t>(number)], Status::crashed,
                "shape mismatch\nsyslab run function --mine me=evil\rsyslab list", "");
  }
  const std::string text = printed(summary, false);
  const std::string marked =
      ": shape mismatch\n      | syslab run function --mine me=evil\n      | syslab list\n      syslab ";
  const std::size_t of_case = text.find(marked);
  ASSERT_NE(of_case, std::string::npos) << text;
  EXPECT_NE(text.find(marked, of_case + 1), std::string::npos) << text;  // of the law
  EXPECT_EQ(text.find("\n      syslab run function"), std::string::npos) << text;
}

TEST(Progress, HasNoLineForWhatWasNotTriedForAReasonThatItHasTold) {
  const registry::Experiment experiment = an_experiment();
  const plan::Plan plan = a_plan(experiment);
  runner::AttemptResult result;
  result.planned = &plan.cases[4];
  result.status = Status::unsupported;
  result.detail = "needs torch >= 2.1";
  testing::internal::CaptureStderr();
  {
    Progress progress(Console(GlobalOptions{}), plan, Eta(plan), {});
    for (int i = 0; i < 2; ++i) {
      progress.started(plan.cases[4]);
      progress.finished(result);
    }
    result.detail = "needs a GPU";
    progress.started(plan.cases[4]);
    progress.finished(result);
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 2) << told;
  EXPECT_NE(told.find(" 3/5 "), std::string::npos) << told;  // all are counted
}

TEST(ResultLine, TellsAnEqualMessageOnce) {
  const registry::Experiment experiment = an_experiment();
  const plan::Plan plan = a_plan(experiment);
  runner::AttemptResult result;
  result.planned = &plan.cases[4];
  result.status = Status::check_failed;
  result.detail = "killed by signal 11";
  EXPECT_NE(result_line(result).find("killed by signal 11"), std::string::npos);
  result.detail = "shape\rhand-out 2026: PASS";
  EXPECT_NE(result_line(result).find("shape\\x0dhand-out 2026: PASS"), std::string::npos);
  const std::string again = result_line(result, "b.law (full)");
  EXPECT_EQ(again.find("killed"), std::string::npos);
  EXPECT_NE(again.find(": the same as b.law (full)"), std::string::npos) << again;
}

TEST(Eta, PrefersWhatThisRunTookToAnEstimate) {
  const registry::Experiment experiment = an_experiment();
  plan::Plan plan = a_plan(experiment);
  plan.cases.resize(3);
  for (plan::PlannedCase& planned : plan.cases) predict(planned, seconds(10), false);
  Eta eta(plan);
  EXPECT_EQ(eta.remaining(Seconds(0)), seconds(30));
  eta.finished(plan.cases[0], Seconds(2));
  EXPECT_EQ(eta.remaining(Seconds(0)), seconds(4));
}

TEST(Eta, CountsNoTimeForWhatIsNotTried) {
  const registry::Experiment experiment = an_experiment();
  plan::Plan plan = a_plan(experiment);
  plan.cases.resize(3);
  for (plan::PlannedCase& planned : plan.cases) predict(planned, seconds(10), true);
  plan.cases[1].predicted_oom = "needs 242 GiB";
  Eta eta(plan);
  EXPECT_EQ(eta.remaining(Seconds(0)), seconds(20));
  eta.finished(plan.cases[0], Seconds(0));  // left out for want of budget: it teaches nothing
  EXPECT_EQ(eta.remaining(Seconds(0)), seconds(10));
}

TEST(Eta, IsUnknownUntilThereIsGroundForAGuess) {
  const registry::Experiment experiment = an_experiment();
  const plan::Plan plan = a_plan(experiment);
  Eta eta(plan);
  EXPECT_FALSE(eta.remaining(Seconds(0)).has_value());
  eta.finished(plan.cases[4], Seconds(1));  // a law says nothing about cases
  EXPECT_FALSE(eta.remaining(Seconds(0)).has_value());
  eta.finished(plan.cases[0], Seconds(2));
  EXPECT_EQ(eta.remaining(Seconds(0)), seconds(6));
}

TEST(Eta, PrefersStoredDurationsOfTheSameCase) {
  const registry::Experiment experiment = an_experiment();
  plan::Plan plan = a_plan(experiment);
  for (int i = 0; i < 5; ++i) predict(plan.cases[static_cast<std::size_t>(i)], seconds(10 * (i + 1)), true);
  Eta eta(plan);
  EXPECT_EQ(eta.remaining(Seconds(0)), seconds(150));
  EXPECT_EQ(eta.remaining(Seconds(4)), seconds(146));
  EXPECT_EQ(eta.remaining(Seconds(400)), seconds(140));  // overdue: nothing left of the first
  eta.finished(plan.cases[0], Seconds(1));
  EXPECT_EQ(eta.remaining(Seconds(0)), seconds(140));
}

TEST(Eta, CountsNoTimeForSkippedCases) {
  const registry::Experiment experiment = an_experiment();
  plan::Plan plan = a_plan(experiment);
  plan.cases.resize(3);
  plan.cases[1].skip_reason = "too big";
  Eta eta(plan);
  eta.finished(plan.cases[1], Seconds(0));
  eta.finished(plan.cases[0], Seconds(3));
  EXPECT_EQ(eta.remaining(Seconds(0)), seconds(3));
}

TEST(ProgressLine, SaysCaseLabelTextAndEta) {
  EXPECT_EQ(progress_line(37, 112, "flash_forward tiled", "0.42 % of 0.50 % wanted", seconds(190), std::nullopt, 120),
            "case 37/112, flash_forward tiled, 0.42 % of 0.50 % wanted, ETA 3 m 10 s");
  EXPECT_EQ(progress_line(1, 2, "x", "", seconds(5), seconds(120), 120),
            "case 1/2, x, ETA 5.00 s, 2 m 0 s of the budget left");
  EXPECT_EQ(progress_line(1, 2, "x", "", seconds(5), seconds(0), 120),
            "case 1/2, x, ETA 5.00 s, the budget is used up");
  EXPECT_EQ(progress_line(1, 2, "x", "", std::nullopt, std::nullopt, 120), "case 1/2, x");
}

TEST(ProgressLine, FitsTheTerminalAndKeepsTheEta) {
  const std::string line = progress_line(37, 112, std::string(200, 'x'), "text", seconds(10), std::nullopt, 60);
  EXPECT_EQ(line.size(), 60U);
  EXPECT_TRUE(line.ends_with("ETA 10.0 s"));
  // Never half of a UTF-8 character.
  EXPECT_EQ(progress_line(1, 1, "μμμμμμ", "", std::nullopt, std::nullopt, 14), "case 1/1, μμ");
  EXPECT_EQ(progress_line(1, 1, "μμμμμμ", "", std::nullopt, std::nullopt, 15), "case 1/1, μμ");
}

TEST(ResultLine, ShowsTimeAndRateOrTheReason) {
  const registry::Experiment experiment = an_experiment();
  const plan::Plan plan = a_plan(experiment);
  runner::AttemptResult result;
  result.planned = &plan.cases[2];
  result.status = Status::ok;
  result.records.push_back(worker::MetricRecord{.name = "time", .unit = "s", .value = 0.00123});
  result.records.push_back(worker::MetricRecord{.name = "tflops", .unit = "TFLOP/s", .value = 0.0123});
  EXPECT_EQ(result_line(result), "ok           flash_forward tiled seq=2  1.23 ms  12.3 GFLOP/s");
  result.status = Status::crashed;
  result.detail = "killed by signal 9 (Killed)";
  EXPECT_EQ(result_line(result), "crashed      flash_forward tiled seq=2: killed by signal 9 (Killed)");
  result.detail += "\n  a traceback\n  of two lines";
  EXPECT_EQ(result_line(result), "crashed      flash_forward tiled seq=2: killed by signal 9 (Killed)");
}

TEST(Summary, ExitsWithTheWorstAndCountsMissingCases) {
  const registry::Experiment experiment = an_experiment();
  const plan::Plan plan = a_plan(experiment);
  Summary summary("uid");
  EXPECT_EQ(summary.exit(), Exit::well);
  summary.add(plan.cases[0], Status::ok, "", "");
  summary.add(plan.cases[1], Status::skipped, "too big", "");
  EXPECT_EQ(summary.exit(), Exit::well);
  summary.add_missing(1);
  EXPECT_EQ(summary.exit(), Exit::incomplete);
  summary.add(plan.cases[2], Status::timeout, "", "");
  EXPECT_EQ(summary.exit(), Exit::incomplete);
  summary.add(plan.cases[3], Status::check_failed, "", "check-uid");
  EXPECT_EQ(summary.exit(), Exit::wrong);
}

TEST(Summary, CountsWhatTheBudgetLeftOutAsMissing) {
  const registry::Experiment experiment = an_experiment();
  const plan::Plan plan = a_plan(experiment);
  Summary summary("uid");
  summary.add_left_out(plan.cases[0], "the budget of 10 s is used up");
  EXPECT_EQ(summary.exit(), Exit::incomplete);
}

TEST(Summary, AfterALawOfMineFailedWhatFailedIsCheckedNext) {
  const registry::Experiment experiment = an_experiment();
  const plan::Plan plan = a_plan(experiment);
  const Submitted mine = submitted_of("me", "/a/flash.py", "Flash");
  Summary summary("uid", {.mine = {mine}, .python_flag = " --python python3.12"});
  summary.add(plan.cases[4], Status::check_failed, "", "check-uid");
  EXPECT_EQ(summary.concerns()[0].command, "syslab replay check-uid --python python3.12");
  EXPECT_EQ(summary.next_command(),
            "syslab check flash_forward --mine me=/a/flash.py:Flash --last-failed --python python3.12");
  summary.add(plan.cases[0], Status::timeout, "", "");  // what was measured has a report
  EXPECT_EQ(summary.next_command(), "syslab report flash_forward");
}

TEST(Summary, CommandsThatItShowsFindTheRunsDatabase) {
  const registry::Experiment experiment = an_experiment();
  const plan::Plan plan = a_plan(experiment);
  Summary summary("uid", {.mine = {}, .protocol = "", .run_flags = "", .check_flags = "", .db_flag = " --db other.db"});
  summary.add(plan.cases[0], Status::ok, "", "");
  EXPECT_EQ(summary.next_command(), "syslab report flash_forward --db other.db");
  summary.add(plan.cases[1], Status::timeout, "", "");
  summary.add(plan.cases[2], Status::check_failed, "", "check-uid");
  ASSERT_EQ(summary.concerns().size(), 2U);
  EXPECT_EQ(summary.concerns()[0].command, "syslab run flash_forward --laws none --impl tiled -a seq=1 --db other.db");
  EXPECT_EQ(summary.concerns()[1].command, "syslab replay check-uid --db other.db");
  summary.add_missing(1);
  EXPECT_EQ(summary.next_command(), "syslab resume uid --db other.db");
}

TEST(Console, WrapsTextAtSpaces) {
  EXPECT_EQ(wrapped("one two three", 9, 2), "  one two\n  three\n");
  EXPECT_EQ(wrapped("", 9, 2), "");
  EXPECT_EQ(wrapped("incomprehensibilities are", 5, 0), "incomprehensibilities\nare\n");
}

}  // namespace
}  // namespace syslab::cli
