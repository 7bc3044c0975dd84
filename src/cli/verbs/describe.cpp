#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/experiment_json.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/text/text.hpp"
#include "plan/plan.hpp"
#include "session/this_machine.hpp"

namespace syslab::cli {
namespace {

constexpr std::size_t kWidth = 100;

std::string values_text(const Values& values) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ", ") + syslab::to_string(value);
  return text;
}

// Two columns: names and descriptions.
class Section {
 public:
  Section(std::string& text, const Console& console, std::string_view heading) : text_(text) {
    text_ += "\n" + console.styled(heading, Style::bold) + "\n";
  }
  void row(std::string_view name, std::string_view says) {
    constexpr std::size_t kNameWidth = 26;
    const std::string body = wrapped(says, kWidth, kNameWidth + 4);
    // The first line begins after the name if there is room.
    if (name.size() <= kNameWidth && !body.empty()) {
      text_ += fmt::format("  {:<{}}  {}", name, kNameWidth, body.substr(kNameWidth + 4));
    } else {
      text_ += fmt::format("  {}\n{}", name, body);
    }
  }

 private:
  std::string& text_;
};

// The first line of an axis' help says what it is, any other what one of its values stands for: "small: 12 layers, …".
std::string describe_axis(const Axis& axis) {
  std::string says = axis.help.empty() ? "" : axis.help.substr(0, axis.help.find('\n')) + ": ";
  says += values_text(axis.values);
  if (!axis.also.empty()) says += "; also " + values_text(axis.also);
  for (const auto& [word, meanings] : axis.by_handout) {
    for (const auto& [handout, value] : meanings) {
      says += fmt::format("; with --handout {} {} is {}", handout, word, syslab::to_string(value));
    }
  }
  if (!axis.closed) says += "; or any other";
  return says;
}

std::string describe_implementation(const registry::Implementation& it) {
  std::string says = it.teaches;
  if (it.role == Role::reference) says = "the oracle. " + says;
  if (it.role == Role::peer) says = "a peer. " + says;
  if (!it.dtypes.empty()) says += fmt::format(" ({})", fmt::join(it.dtypes, ", "));
  if (it.device == DeviceKind::cuda) {
    const auto capability = [](int sm) { return fmt::format("{}.{}", sm / 10, sm % 10); };
    const std::string last = it.maximum_sm == 0               ? " or more"
                             : it.maximum_sm == it.minimum_sm ? " alone"
                                                              : " to " + capability(it.maximum_sm);
    says += it.minimum_sm > 0
                ? fmt::format(" Runs on a GPU of compute capability {}{}.", capability(it.minimum_sm), last)
                : " Runs on a GPU.";
  }
  if (!it.takes.empty()) says += " Takes " + it.takes + ".";
  if (!it.unavailable.empty()) says += fmt::format(" Unavailable here: {} {}.", it.name, it.unavailable);
  return says.empty() ? "-" : says;
}

std::string number_of_cases(const Context& context, const plan::Selection& selection) {
  return counted(static_cast<std::int64_t>(plan::make_plan(context.registry, selection).cases.size()), "case");
}

// What it is, who poses it and what is asked. The analogue comes first, so that nobody takes our tool for the one that
// the problem's name promises.
std::string head_of(const registry::Experiment& experiment, const Console& console) {
  std::string text;
  if (!experiment.analogue.empty()) text += "our analogue: " + experiment.analogue + "\n";
  text += console.styled(experiment.id, Style::bold) + ": " + experiment.title + "\n";
  for (const registry::HandoutProblem& problem : experiment.problems) {
    text += fmt::format("hand-out {}: problem {}, {}\n", problem.handout, problem.problem,
                        counted(problem.points, "point"));
  }
  if (!experiment.tags.empty()) text += fmt::format("tags: {}\n", fmt::join(experiment.tags, ", "));
  if (!experiment.aliases.empty()) text += fmt::format("also called: {}\n", fmt::join(experiment.aliases, ", "));
  text +=
      fmt::format("measured by: protocol {} unless --protocol says otherwise; smoke by quick\n", experiment.protocol);
  if (experiment.oom_is_an_answer) text += "running out of memory: an answer, no failure (exit code 0)\n";
  if (!experiment.question.empty()) text += "\n" + wrapped(experiment.question, kWidth, 0);
  return text;
}

void tell_axes(const registry::Experiment& experiment, std::string& text, const Console& console) {
  if (experiment.axes.empty() && !experiment.takes_ranks()) return;
  Section section(text, console, "Axes");
  for (const Axis& axis : experiment.axes) {
    section.row(axis.name, describe_axis(axis));
    const std::vector<std::string> lines = split(axis.help, '\n');
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const std::size_t colon = std::min(lines[i].find(": "), lines[i].size());
      section.row("  " + lines[i].substr(0, colon), lines[i].substr(std::min(colon + 2, lines[i].size())));
    }
  }
  if (experiment.takes_ranks()) {
    section.row(experiment.ranks.name, fmt::format("{}: {}; or any other up to {}", experiment.ranks.help,
                                                   values_text(experiment.ranks.values), registry::kMostRanks));
  }
}

void tell_presets(const registry::Experiment& experiment, std::string& text, const Console& console) {
  if (experiment.presets.empty()) return;
  Section section(text, console, "Presets");
  for (const auto& [name, preset] : experiment.presets) {
    std::string says;
    for (const auto& [axis, values] : preset) says += (says.empty() ? "" : "; ") + axis + "=" + values_text(values);
    section.row(name, says.empty() ? "the defaults" : says);
  }
}

void tell_implementations(const registry::Experiment& experiment, std::string& text, const Console& console) {
  if (experiment.implementations.empty()) return;
  Section section(text, console, "Implementations");
  for (const registry::Implementation& it : experiment.implementations) {
    section.row(it.name, describe_implementation(it));
  }
  if (experiment.accepts_mine) {
    section.row("yours", experiment.mine_on_ranks ? "--mine NAME=file.py:Class, on ranks that the lab starts"
                         : experiment.times_mine  ? "--mine NAME=kernel.so or --mine NAME=flash.py:Class"
                                                  : "--mine NAME=file.py:Class, to be checked and not timed");
  }
}

void tell_choice(const registry::Experiment& experiment, std::string& text, const Console& console) {
  if (experiment.chosen.empty()) return;
  Section section(text, console, "Of a call that names none the library takes the first that can, and says why");
  for (const registry::Choice& row : experiment.chosen) section.row(row.implementation, row.because);
}

void tell_what_to_try(const Context& context, const registry::Experiment& experiment, std::string& text) {
  plan::Selection selection;
  selection.patterns = {experiment.id};
  selection.machine = this_machine(context.registry);
  Section section(text, context.console, "Try");
  section.row("syslab plan " + experiment.id, number_of_cases(context, selection));
  for (const auto& [name, preset] : experiment.presets) {
    selection.preset = name;
    section.row(fmt::format("syslab run {} --preset {}", experiment.id, name), number_of_cases(context, selection));
  }
  if (!experiment.laws.empty()) {
    section.row("syslab check " + experiment.id, counted(static_cast<std::int64_t>(experiment.laws.size()), "law"));
  }
}

}  // namespace

Exit execute(const Context& context, const DescribeOptions& options) {
  const registry::Experiment& experiment = context.registry.find(options.name);
  const Console& console = context.console;
  if (console.json()) {
    console.print_document(experiment_json(experiment));
    return Exit::well;
  }
  std::string text = head_of(experiment, console);
  tell_axes(experiment, text, console);
  tell_presets(experiment, text, console);
  tell_implementations(experiment, text, console);
  tell_choice(experiment, text, console);
  if (!experiment.laws.empty()) {
    Section section(text, console, "Laws");
    for (const LawInfo& law : experiment.laws) section.row(law.id, law.statement);
  }
  if (!experiment.metrics.empty()) {
    Section section(text, console, "Metrics");
    for (const registry::Metric& metric : experiment.metrics) {
      section.row(fmt::format("{} [{}]", metric.name, metric.unit), metric.help);
    }
  }
  if (!experiment.skips.empty()) {
    text += "\n" + console.styled("Skipped", Style::bold) + "\n";
    for (const registry::SkipRule& rule : experiment.skips) text += wrapped(rule.reason, kWidth, 2);
  }
  tell_what_to_try(context, experiment, text);
  console.print(text);
  return Exit::well;
}

}  // namespace syslab::cli
