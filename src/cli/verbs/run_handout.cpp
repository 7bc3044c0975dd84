// The hand-out's run is a sequence of runs, each of one experiment, one step of the schedule after the other. A run has
// one measuring protocol, stored with it, and on that lean resume, replay, gate, compare and every view that holds
// numbers against each other; to give each attempt a protocol of its own would change all of them and let a "run" mean
// several things. In steps, each is measured by its own experiment's protocol and remade by one command. It also needs
// no run to be resumed: what is left is whatever the store does not hold, however it came there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/folder_of_mine.hpp"
#include "cli/handout.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/text/text.hpp"
#include "runner/interruption.hpp"
#include "session/forecast.hpp"
#include "session/requeue.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"

namespace syslab::cli {
namespace {

// Whether the cases vary the warm-up: a first step is one only in a process that has run nothing before.
bool studies_first_steps(const plan::Plan& plan) {
  constexpr const char* kWarmup = "warmup";
  return std::ranges::any_of(plan.cases, [&](const plan::PlannedCase& one) {
    const Axis* axis = one.experiment->find_axis(kWarmup);
    return axis != nullptr && one.params.at(kWarmup) != axis->values.front();
  });
}

class Sitting {
 public:
  Sitting(const Context& context, const RunOptions& options)
      : context_(context),
        options_(options),
        selection_(select_for_handout(context, options.selection, options.measuring.memory_limit)),
        handout_(handout_of(context, options.selection.handout, selection_)),
        timeout_(duration_option("--timeout", options.timeout)),
        budget_(options.budget.empty() ? Nanoseconds{} : duration_option("--budget", options.budget)) {
    check_mine(selection_.mine);
    if (!selection_.mine.empty()) tell_missing_walls(context.console);
  }

  Exit run() {
    store::Store store = open_for_writing(context_);
    stored_ = StoredEvidence(store, timeout_);
    const evidence::Schedule schedule = schedule_of(context_, handout_, selection_, options_.laws != Laws::none);
    for (const std::string& text : impossible_texts(schedule.impossible)) context_.console.note(text);
    for (const evidence::Step& step : schedule.steps) {
      if (interruption_.signal() != 0) break;
      if (budget_.count() == 0 || left().count() > 0) {
        take(store, step);
      } else {
        passed_over_ += static_cast<int>(rest_of(handout_, step, stored_).cases.size());
      }
    }
    return finish();
  }

 private:
  Nanoseconds left() const { return budget_ - (std::chrono::steady_clock::now() - began_); }

  Conditions conditions_of(const plan::Plan& plan) const {
    Conditions conditions = to_conditions(options_.measuring, plan, false);
    conditions.law_cases = law_cases(options_.laws);
    conditions.timeout = timeout_;
    if (budget_.count() > 0) conditions.budget = std::max(left(), Nanoseconds{1});
    if (studies_first_steps(plan)) conditions.isolation = runner::Isolation::per_case;
    if (!options_.isolation.empty()) conditions.isolation = runner::parse_isolation(options_.isolation);
    return conditions;
  }

  // What can be run of a step now: neither longer than a case may take, nor than the time that is left.
  plan::Plan what_fits(const store::Store& store, const evidence::Step& step) {
    plan::Plan rest = rest_of(handout_, step, stored_);
    if (rest.cases.empty()) return rest;
    forecast(rest, &store, conditions_of(rest));
    std::erase_if(rest.cases, [&](const plan::PlannedCase& one) {
      if (!one.predicted_oom.empty()) return false;
      const Nanoseconds expected = std::chrono::duration_cast<Nanoseconds>(evidence::seconds_of(one));
      if (expected > timeout_) {
        ++too_long_[one.experiment->id];
        return true;
      }
      if (budget_.count() == 0 || expected <= left()) return false;
      ++passed_over_;
      return true;
    });
    for (std::size_t i = 0; i < rest.cases.size(); ++i) rest.cases[i].index = static_cast<int>(i);
    return rest;
  }

  void take(store::Store& store, const evidence::Step& step) {
    const plan::Plan plan = what_fits(store, step);
    if (plan.cases.empty()) return;
    tell_board(plan);
    const Conditions conditions = conditions_of(plan);
    const std::string label = options_.label.empty() ? "hand-out " + handout_.year : options_.label;
    const store::RowId run = begin_run(context_, store, "run", label, plan, conditions);
    ++runs_;
    const PartOutcome outcome = run_part(context_, store, run, plan, conditions, interruption_);
    exit_ = worse(exit_, outcome.exit);
    for (const auto& [status, count] : outcome.counts) counts_[status] += count;
    passed_over_ += outcome.left_out;
    stored_ = StoredEvidence(store, timeout_);
  }

  void tell_board(const plan::Plan& next) const {
    const evidence::Standing standing = standing_of(handout_, stored_);
    const std::string first = next.cases.size() == 1 ? label_of(next.cases.front())
                                                     : fmt::format("{}, {}", next.cases.front().experiment->id,
                                                                   counted(std::int64_t(next.cases.size()), "case"));
    std::string text = fmt::format("{}; next: {}", standing_text(handout_.year, standing), first);
    Seconds expected{};
    for (const plan::PlannedCase& one : next.cases) expected += evidence::seconds_of(one);
    text += ", " + format_duration(std::chrono::duration_cast<Nanoseconds>(expected));
    if (budget_.count() > 0) text += fmt::format("; {} left", format_duration(std::max(left(), Nanoseconds{})));
    if (context_.console.json()) {
      Json board = to_json(standing);
      board["type"] = "board";
      board["next"] = first;
      context_.console.print_line(board);
    } else {
      context_.console.note(text);
    }
  }

  Exit finish() {
    const bool interrupted = interruption_.signal() != 0;
    if (interrupted) exit_ = worse(exit_, exit_of_missing());
    const evidence::Standing standing = standing_of(handout_, stored_);
    const Nanoseconds took = std::chrono::steady_clock::now() - began_;
    if (context_.console.json()) {
      Json counts = Json::object();
      for (const auto& [status, count] : counts_) counts[std::string(syslab::to_string(status))] = count;
      Json summary = to_json(standing);
      summary.update({{"type", "handout"},
                      {"handout", handout_.year},
                      {"runs", runs_},
                      {"counts", counts},
                      {"passed_over", passed_over_},
                      {"too_long", too_long_},
                      {"interrupted", interrupted},
                      {"exit", static_cast<int>(exit_)},
                      {"seconds", Seconds(took).count()}});
      context_.console.print_line(summary);
      return exit_;
    }
    if (!context_.console.quiet()) context_.console.print(summary_text(standing, took, interrupted));
    return exit_;
  }

  std::string summary_text(const evidence::Standing& standing, Nanoseconds took, bool interrupted) const {
    std::vector<std::string> counts;
    for (const auto& [status, count] : counts_) {
      counts.push_back(fmt::format("{} {}", count, syslab::to_string(status)));
    }
    std::string text = context_.console.styled(standing_text(handout_.year, standing), Style::bold);
    text += fmt::format("\n{} in {}{}{}\n", counted(runs_, "run"), format_duration(took), counts.empty() ? "" : ": ",
                        fmt::join(counts, ", "));
    const std::string database = db_flag(context_.global);
    for (const auto& [experiment, count] : too_long_) {
      text += fmt::format("  {} of {} would take longer than {} here (--timeout)\n", counted(count, "case"), experiment,
                          format_duration(timeout_));
    }
    if (passed_over_ > 0) {
      text += fmt::format("  {} did not fit into the rest of the budget\n", counted(passed_over_, "case"));
    }
    if (exit_ != Exit::well && !interrupted) {
      text += fmt::format("  what failed: syslab query 'SELECT * FROM v_failures'{}\n", database);
    }
    std::string again = "syslab run --handout " + handout_.year;
    for (const std::string& mine : options_.selection.mine) again += " --mine " + shell_word(mine);
    const bool goes_on = interrupted || standing.answered < standing.deliverables;
    text += fmt::format("next: {}syslab report --handout {}{}\n", goes_on ? again + database + ", or " : "",
                        handout_.year, database);
    return text;
  }

  const Context& context_;
  const RunOptions& options_;
  plan::Selection selection_;
  Handout handout_;
  Nanoseconds timeout_, budget_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  runner::Interruption interruption_;
  StoredEvidence stored_;
  std::map<std::string, int> too_long_;
  std::map<Status, int> counts_;
  int passed_over_ = 0, runs_ = 0;
  Exit exit_ = Exit::well;
};

}  // namespace

Exit run_handout(const Context& context, const RunOptions& options) {
  refuse_choices("run", options.selection, options.measuring);
  refuse_choice(options.data != "normal", "run", options.selection, "--data");
  refuse_choice(options.contract.has_value(), "run", options.selection, "--contract");
  return Sitting(context, options).run();
}

}  // namespace syslab::cli
