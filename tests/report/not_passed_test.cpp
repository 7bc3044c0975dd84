// What a report says below a table: of attempts that did not pass, of modified builds and of several machines.
#include <string>

#include "report/grid.hpp"
#include "report/section.hpp"
#include "tests/report/writeup.hpp"

namespace syslab::report {
namespace {

class NotPassed : public Writeup {
 protected:
  static Params case_of(std::int64_t seq) { return {{"seq", seq}, {"dtype", word("fp32")}}; }
  static Record compared(const std::string& name, Outcome outcome, double error, double bound) {
    worker::CheckRecord check{.name = name, .outcome = outcome, .cases_run = 1, .seed = "7"};
    check.worst_error = error;
    check.tolerance = bound;
    return check;
  }
  void fail(std::int64_t seq, Status status, std::vector<Record> records = {}) {
    fixture_.add({.experiment = "flash_benchmarking",
                  .params = case_of(seq),
                  .implementation = "flash_tf32",
                  .records = std::move(records),
                  .status = status,
                  .detail = "no good"});
  }
  void pass(std::int64_t seq, double bound, const std::string& machine = "box", bool modified = false) {
    fixture_.add({.experiment = "flash_benchmarking",
                  .params = case_of(seq),
                  .implementation = "flash_tf32",
                  .records = {compared("reference:lse", Outcome::passed, 6e-4, bound), timed("time", 1e-3)},
                  .machine = machine,
                  .modified = modified});
  }
  std::string below() {
    return write_sentences(shared_table(fixture_.store(), "not_passed_said", "flash_benchmarking"));
  }
  std::string rows() {
    return write(shared_table(fixture_.store(), "not_passed", "flash_benchmarking"), Format::markdown);
  }
};

TEST_F(NotPassed, IsNothingWhereAllPassed) {
  pass(128, 1e-3);
  EXPECT_TRUE(sentences(shared_table(fixture_.store(), "not_passed_said", "flash_benchmarking")).empty());
  EXPECT_FALSE(has(rows(), "flash_tf32")) << rows();
}

TEST_F(NotPassed, AWrongCaseIsToldWithBothBoundsThoughALaterOnePassed) {
  fail(65536, Status::check_failed, {compared("reference:lse", Outcome::falsified, 6.1e-4, 3.31e-4)});
  EXPECT_TRUE(has(below(), "`flash_tf32` wrong (the only case; lse: error 0.00061, bound 0.000331)")) << below();
  pass(65536, 4.95e-3);
  EXPECT_TRUE(has(below(), "bound 0.000331; later ok with bound 0.00495)")) << below();
  EXPECT_TRUE(has(rows(), "3.31e-04")) << rows();
  EXPECT_TRUE(has(rows(), "4.95e-03")) << rows();
}

TEST_F(NotPassed, FailedAndAbortedCasesAreToldWithoutNumbers) {
  fail(1, Status::aborted);
  fail(2, Status::error, {compared("reference:lse", Outcome::falsified, 0.125, 0.0625), timed("time", 77e-3)});
  fail(3, Status::crashed);
  fail(4, Status::oom);
  for (const char* told : {"aborted (seq=1)", "ended with an error (seq=2)", "crashed (seq=3)"}) {
    EXPECT_TRUE(has(below(), told)) << below();
  }
  EXPECT_FALSE(has(below(), "seq=4")) << "running out of memory is a finding: " << below();
  for (const std::string& text : {below(), rows()}) {
    EXPECT_FALSE(has(text, "0.0625") || has(text, "6.25e-02") || has(text, "77")) << text;
  }
}

TEST_F(Writeup, ATableOfModifiedBuildsOrSeveralMachinesSaysSo) {
  const auto measure = [&](const std::string& implementation, const std::string& machine, bool modified) {
    add("ceiling_copy", {{"bytes", number(1 << 30)}}, implementation, {timed("time", 1e-3), metric("gbps", 10)},
        {.machine = machine, .modified = modified});
  };
  measure("a", "box", false);
  EXPECT_FALSE(has(shown("ceiling_copy", "ceiling_copy"), "Modified build"));
  EXPECT_FALSE(has(shown("ceiling_copy", "ceiling_copy"), "kinds of machine"));
  measure("b", "box", true);
  EXPECT_TRUE(has(shown("ceiling_copy", "ceiling_copy"), "Modified build in 1 of 2 runs."))
      << shown("ceiling_copy", "ceiling_copy");
  EXPECT_FALSE(has(shown("ceiling_copy", "ceiling_copy"), "kinds of machine"));
  measure("c", "another", true);
  EXPECT_TRUE(has(shown("ceiling_copy", "ceiling_copy"), "Modified build in 2 of 3 runs; 2 kinds of machine."))
      << shown("ceiling_copy", "ceiling_copy");
}

}  // namespace
}  // namespace syslab::report
