// The end of a run, for people and for machines.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "contract/finding.hpp"
#include "core/text/units.hpp"
#include "plan/plan.hpp"
#include "runner/runner.hpp"
#include "session/context.hpp"
#include "session/no_time.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::cli {

// A case that did not end well, and the command to look closer.
struct Concern {
  std::string label, status, detail, command;
  std::string implementation, law;  // "attention.refusal (full)"; no law: a case that was measured
  std::string experiment;
  Exit exit = Exit::well;
  Finding finding{};  // of a law
};

// What a command needs to run one case of the run again as it was run.
struct Rerun {
  std::vector<Submitted> mine;
  std::string protocol;
  std::string run_flags, check_flags;  // " --seed 7 --timeout 30s"
  std::string db_flag;                 // " --db other.db", of every command that reads or writes where this run did
  std::string python_flag;             // " --python .venv/bin/python", of every command that runs --mine again
};

// What the search of a law found, of those that an attempt stored.
Finding finding_of(const runner::AttemptResult& result);

// Concerns that say the same of one implementation: laws whose gist (verdict/gist.hpp) is equal, and those that the
// same input shows by the same wrong element. In the order of their first.
std::vector<std::vector<Concern>> folded(const std::vector<Concern>& concerns);

// The laws behind the first of such a group, by experiment, which is told where it is not the first one's:
// "attention.lse (full), of flash_backward: attention.lse (full)".
std::string others_of(const std::vector<Concern>& equal);

class Summary {
 public:
  explicit Summary(std::string run_uid, Rerun rerun = {}) : run_uid_(std::move(run_uid)), rerun_(std::move(rerun)) {}

  // `failed_check`: uid of the check that was falsified, where one was.
  void add(const plan::PlannedCase& planned, Status status, const std::string& detail, const std::string& failed_check,
           const Finding& finding = {});
  // Of a case that ended well and has no time to tell: beside add(), which counts it.
  void add_no_time(const plan::PlannedCase& planned, const NoTime& why);
  // Of a case that ended `unsupported` because nothing judges its results: beside add().
  void add_not_judged(const plan::PlannedCase& planned, const std::string& why);
  // What its times are to be told with.
  void add_warnings(const std::vector<stats::TimingWarning>& warnings) { stats::add_warnings(warnings_, warnings); }
  // A case that the budget left no time for: missing.
  void add_left_out(const plan::PlannedCase& planned, const std::string& why);
  // Cases of the plan that were not reached.
  void add_missing(std::int64_t count) { missing_ += count; }

  Exit exit() const;
  Exit exit_of_tried() const { return exit_; }  // whatever is missing
  // The next command is left out of `one_of_several`.
  void print(const Context& context, Nanoseconds took, bool one_of_several) const;
  std::string next_command() const;
  const std::vector<Concern>& concerns() const { return concerns_; }

 private:
  std::string command_for(const plan::PlannedCase& planned) const;

  std::string run_uid_;
  Rerun rerun_;
  std::map<Status, std::int64_t> counts_;
  std::vector<Concern> concerns_;
  std::vector<stats::TimingWarning> warnings_;
  std::vector<std::string> experiments_;  // measured ones, for the next command
  // Of what the plan leaves out, by status (skipped, unsupported) and reason.
  std::map<std::pair<Status, std::string>, std::int64_t> skips_;
  std::string left_out_example_;
  std::int64_t missing_ = 0, left_out_ = 0, oom_answers_ = 0, total_ = 0;
  Exit exit_ = Exit::well;
};

}  // namespace syslab::cli
