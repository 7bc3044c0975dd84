#include "session/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/contains.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "session/requeue.hpp"
#include "session/selection.hpp"
#include "verdict/gist.hpp"

namespace syslab::cli {
namespace {

// A sweep that fails everywhere must not fill a screen; all of it is in the store.
constexpr std::size_t kConcernsShown = 20;

// What is judged may have written the lines after the first: none passes for a command to run.
constexpr std::string_view kBelowDetail = "      | ";

// "check_failed flash_forward me attention.refusal (full) and 2 other laws: …", the others below it.
std::string text_of(const Console& console, const std::vector<Concern>& equal) {
  const Concern& first = equal.front();
  std::string others, names;
  if (equal.size() > 1) {
    others = " and " + counted(static_cast<std::int64_t>(equal.size()) - 1, "other law");
    names = "\n      also: " + others_of(equal);
  }
  return fmt::format("  {} {}{}{}{}\n      {}\n", console.styled(first.status, Style::bad), one_line(first.label),
                     others, first.detail.empty() ? "" : ": " + with_margin(first.detail, kBelowDetail), names,
                     console.styled(first.command, Style::dim));
}

}  // namespace

Finding finding_of(const runner::AttemptResult& result) {
  for (const worker::Record& record : result.records) {
    const auto* const check = std::get_if<worker::CheckRecord>(&record);
    if (check != nullptr && check->name == result.planned->law) return check->finding;
  }
  return {};
}

std::vector<std::vector<Concern>> folded(const std::vector<Concern>& concerns) {
  std::vector<std::vector<Concern>> groups;
  for (const Concern& concern : concerns) {
    const auto equal = std::find_if(groups.begin(), groups.end(), [&](const std::vector<Concern>& group) {
      const Concern& other = group.front();
      return !concern.law.empty() && !concern.detail.empty() && concern.status == other.status &&
             concern.implementation == other.implementation && !other.law.empty() &&
             (verdict::gist(concern.finding, concern.detail) == verdict::gist(other.finding, other.detail) ||
              verdict::same_counterexample(concern.finding, other.finding));
    });
    equal == groups.end() ? groups.push_back({concern}) : equal->push_back(concern);
  }
  return groups;
}

std::string others_of(const std::vector<Concern>& equal) {
  std::vector<std::string> experiments;
  for (const Concern& one : equal) {
    if (!contains(experiments, one.experiment)) experiments.push_back(one.experiment);
  }
  std::string names;
  for (const std::string& experiment : experiments) {
    std::string its;
    for (std::size_t i = 1; i < equal.size(); ++i) {
      if (equal[i].experiment == experiment) its += (its.empty() ? "" : ", ") + equal[i].law;
    }
    if (its.empty()) continue;
    names += names.empty() ? "" : ", ";
    names += experiment == equal.front().experiment ? its : fmt::format("of {}: {}", experiment, its);
  }
  return names;
}

// The command that runs this one case again.
std::string Summary::command_for(const plan::PlannedCase& planned) const {
  const bool law = planned.task == plan::Task::law;
  std::string command = fmt::format("syslab {} {}", law ? "check" : "run", planned.experiment->id);
  if (!law) command += " --laws none";
  if (!planned.implementation.empty()) command += " --impl " + shell_word(planned.implementation);
  for (const Submitted& mine : rerun_.mine) {
    if (mine.name == planned.implementation) command += " --mine " + shell_word(mine.name + "=" + path_of(mine));
  }
  if (law) {
    if (const auto contract = plan::contract_of(planned))
      command += fmt::format(" --contract {}", to_string(*contract));
    return command + rerun_.check_flags + rerun_.python_flag + rerun_.db_flag;
  }
  for (const auto& [name, value] : planned.params)
    command += " -a " + shell_word(name + "=" + syslab::to_string(value));
  if (planned.experiment->takes_ranks()) command += fmt::format(" -a world_size={}", planned.world_size);
  if (!rerun_.protocol.empty() && rerun_.protocol != planned.experiment->protocol) {
    command += " --protocol " + rerun_.protocol;
  }
  return command + rerun_.run_flags + rerun_.python_flag + rerun_.db_flag;
}

void Summary::add(const plan::PlannedCase& planned, Status status, const std::string& detail,
                  const std::string& failed_check, const Finding& finding) {
  ++total_;
  ++counts_[status];
  const Exit exit = exit_of(status, planned.experiment->oom_is_an_answer);
  exit_ = worse(exit_, exit);
  if (std::find(experiments_.begin(), experiments_.end(), planned.experiment->id) == experiments_.end()) {
    experiments_.push_back(planned.experiment->id);
  }
  if (planned.skip_reason || status == Status::skipped) ++skips_[{status, detail}];
  if (status == Status::oom && exit == Exit::well) ++oom_answers_;
  if (exit == Exit::well) return;
  std::string command = failed_check.empty() ? command_for(planned)
                                             : "syslab replay " + failed_check + rerun_.python_flag + rerun_.db_flag;
  concerns_.push_back({label_of(planned), std::string(syslab::to_string(status)), detail, std::move(command),
                       planned.implementation, law_label(planned), planned.experiment->id, exit, finding});
}

void Summary::add_no_time(const plan::PlannedCase& planned, const NoTime& why) {
  exit_ = worse(exit_, Exit::unclear);
  concerns_.push_back({label_of(planned), "no time", (was_busy(why) ? fmt::format("{}: ", kBusy) : "") + in_words(why),
                       command_for(planned), planned.implementation, law_label(planned), planned.experiment->id,
                       Exit::unclear});
}

void Summary::add_not_judged(const plan::PlannedCase& planned, const std::string& why) {
  exit_ = worse(exit_, Exit::unclear);
  concerns_.push_back({label_of(planned), "unsupported", why, command_for(planned), planned.implementation,
                       law_label(planned), planned.experiment->id, Exit::unclear});
}

void Summary::add_left_out(const plan::PlannedCase& planned, const std::string& why) {
  if (left_out_ == 0) left_out_example_ = label_of(planned) + ": " + why;
  ++left_out_;
  ++missing_;
}

Exit Summary::exit() const {
  const bool is_missing = missing_ > 0 || counts_.contains(Status::aborted);
  return is_missing ? worse(exit_, exit_of_missing()) : exit_;
}

std::string Summary::next_command() const {
  if (missing_ > 0 || counts_.contains(Status::aborted))
    return "syslab resume " + run_uid_ + rerun_.python_flag + rerun_.db_flag;
  if (experiments_.empty()) return "syslab list";
  const bool laws_failed = std::ranges::any_of(concerns_, [](const Concern& one) { return !one.law.empty(); });
  if (laws_failed && std::ranges::all_of(concerns_, [](const Concern& one) { return !one.law.empty(); })) {
    std::string mine;
    for (const Submitted& one : rerun_.mine) mine += " --mine " + shell_word(one.name + "=" + path_of(one));
    if (!mine.empty()) {
      return fmt::format("syslab check {}{} --last-failed{}{}{}", fmt::join(experiments_, " "), mine,
                         rerun_.check_flags, rerun_.python_flag, rerun_.db_flag);
    }
  }
  return fmt::format("syslab report {}{}", fmt::join(experiments_, " "), rerun_.db_flag);
}

void Summary::print(const Context& context, Nanoseconds took, bool one_of_several) const {
  const Console& console = context.console;
  if (console.json()) {
    Json counts = Json::object(), skips = Json::object(), concerns = Json::array();
    for (const auto& [status, count] : counts_) counts[std::string(syslab::to_string(status))] = count;
    for (const auto& [skip, count] : skips_) skips[std::string(syslab::to_string(skip.first))][skip.second] = count;
    for (const Concern& concern : concerns_) {
      concerns.push_back({{"case", concern.label},
                          {"status", concern.status},
                          {"detail", concern.detail},
                          {"command", concern.command}});
    }
    console.print_line({{"type", "summary"},
                        {"run", run_uid_},
                        {"counts", counts},
                        {"missing", missing_},
                        {"left_out", left_out_},
                        {"skips", skips},
                        {"concerns", concerns},
                        {"warnings", stats::to_json(warnings_)},
                        {"exit", static_cast<int>(exit())},
                        {"seconds", Seconds(took).count()}});
    return;
  }
  if (console.quiet()) return;
  std::string counts;
  for (const auto& [status, count] : counts_) {
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, syslab::to_string(status));
  }
  if (missing_ > 0) counts += fmt::format("{}{} missing", counts.empty() ? "" : ", ", missing_);
  const Style verdict = exit() == Exit::well ? Style::good : Style::bad;
  std::string text = fmt::format("{} in {}: {}\n", console.styled(counted(total_ + missing_, "case"), Style::bold),
                                 format_duration(took), console.styled(counts, verdict));
  for (const auto& [skip, count] : skips_) {
    text += fmt::format("  {} {}: {}\n", count, syslab::to_string(skip.first), with_margin(skip.second, kBelowDetail));
  }
  if (oom_answers_ > 0) {
    text += fmt::format("  {} ran, or would run, out of memory: an answer here, no failure\n", oom_answers_);
  }
  if (left_out_ > 0) {
    text += fmt::format("  {} did not start; {}\n", left_out_, one_line(left_out_example_));
  }
  std::vector<Concern> sorted = concerns_;  // wrong results before missing ones
  std::stable_sort(sorted.begin(), sorted.end(), [](const Concern& a, const Concern& b) {
    return a.exit != b.exit && worse(a.exit, b.exit) == a.exit;
  });
  const std::vector<std::vector<Concern>> groups = folded(sorted);
  for (std::size_t i = 0; i < std::min(groups.size(), kConcernsShown); ++i) text += text_of(console, groups[i]);
  if (groups.size() > kConcernsShown) {
    text += fmt::format("  and {} more: syslab query 'SELECT * FROM v_failures'{}\n", groups.size() - kConcernsShown,
                        rerun_.db_flag);
  }
  for (const stats::TimingWarning& one : warnings_) text += "  warning: " + stats::sentence(one) + "\n";
  text += fmt::format("run {}\n", run_uid_);
  if (!one_of_several) text += fmt::format("next: {}\n", next_command());
  console.print(text);
}

}  // namespace syslab::cli
