#include "compare/noise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "compare/session.hpp"
#include "core/error.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "stats/detect.hpp"
#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

// Work that represents the machine: in registers, through its caches, and a product of matrices on every thread. Hot,
// because the cost of cold caches would be measured again and again and is not noise.
struct Work {
  const char* experiment;
  const char* implementation;  // empty: the first
  std::vector<plan::AxisAssignment> axes;
};

std::vector<Work> kinds_of_work() {
  return {{"selftest_compare", "", {{"work", {"chain"}}}},
          {"selftest_compare", "", {{"work", {"walk"}}}},
          {"ceiling_gemm", "openblas", {{"size", {"256"}}}}};
}

// One comparison of as many launches as the default rule makes at least.
int launches_of_trial() { return stats::PairedStopRule{}.first_look; }

struct Noise {
  std::string title;
  int launches = 0, trials = 0, called = 0;  // trials that were called faster or slower
  std::optional<double> redrawn,
      redrawn_any;  // share called, beyond delta and at all; from a whole trial's launches on
  stats::PairedSpread spread;
  double delta = 0;
  double smallest_first = 0, smallest_last = 0;  // detectable, by the fewest and the most launches of the rule
  std::string failed;
};

plan::ComparisonPlan identical_sides(const registry::Registry& registry) {
  plan::ComparisonPlan plan;
  for (const Work& work : kinds_of_work()) {
    const auto& all = registry.experiments();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& it) { return it.id == work.experiment; });
    if (found == all.end()) continue;
    plan::Selection selection;
    selection.patterns = {work.experiment};
    selection.assignments = work.axes;
    if (found->find_implementation(work.implementation) != nullptr) selection.implementations = {work.implementation};
    for (const plan::PlannedCase& planned : plan::make_plan(registry, selection).cases) {
      if (planned.skip_reason) continue;
      plan::ComparisonPoint point{planned.params, planned.implementation, planned, planned};
      point.a.index = static_cast<int>(2 * plan.points.size());
      point.b.index = point.a.index + 1;
      plan.points.push_back(std::move(point));
      break;
    }
  }
  return plan;
}

// The launches in groups of a trial each, judged as `compare` would.
void count_false_alarms(const MeasuredPoint& measured, Noise& noise) {
  const int each = launches_of_trial();
  for (int first = 0; first + each <= noise.launches; first += each) {
    std::vector<runner::PairedBlock> trial;
    std::copy_if(
        measured.blocks.begin(), measured.blocks.end(), std::back_inserter(trial),
        [&](const runner::PairedBlock& block) { return block.launch >= first && block.launch < first + each; });
    const stats::Verdict verdict = verdict::judge(turns_of(trial), std::nullopt, {}).verdict;
    ++noise.trials;
    if (verdict == stats::Verdict::faster || verdict == stats::Verdict::slower) ++noise.called;
  }
}

Noise noise_of(const ComparisonSession& session, const MeasuredPoint& measured) {
  Noise noise;
  noise.title = session.title(*measured.point);
  noise.launches = verdict::judge(turns_of(measured.blocks), std::nullopt, {}).launches;
  if (measured.failed && measured.stop != "interrupted") {
    noise.failed = words::reason(*measured.failed);
    return noise;
  }
  if (noise.launches < 3) {
    noise.failed = "interrupted before three launches were whole";
    return noise;
  }
  const stats::PairedStopRule rule;
  noise.spread = stats::paired_spread(for_stats(measured.blocks));
  noise.delta = verdict::judge(turns_of(measured.blocks), std::nullopt, {}).delta;
  // As many as there were: with long calls fewer fit than the rule has.
  const auto blocks = static_cast<int>(measured.blocks.size()) / noise.launches;
  noise.smallest_first = stats::smallest_detectable(noise.delta, noise.spread, rule.first_look, blocks);
  noise.smallest_last = stats::smallest_detectable(noise.delta, noise.spread, rule.max_launches, blocks);
  count_false_alarms(measured, noise);
  if (noise.trials > 0) {
    constexpr std::uint64_t kSeed = 1;  // any: the same launches give the same rate
    const auto rate = [&](double delta) {
      return stats::false_alarm_rate(for_stats(measured.blocks), delta, launches_of_trial(), kSeed);
    };
    noise.redrawn = rate(noise.delta);
    noise.redrawn_any = rate(0);
  }
  return noise;
}

Json to_json(const Noise& it) {
  if (!it.failed.empty()) return {{"case", it.title}, {"failed", it.failed}};
  const stats::PairedStopRule rule;
  return {
      {"case", it.title},
      {"launches", it.launches},
      {"trials", it.trials},
      {"false_alarms", it.called},
      {"between_launches", it.spread.between_launches},
      {"between_blocks", it.spread.between_blocks},
      {"delta", it.delta},
      {"smallest_detectable",
       {{std::to_string(rule.first_look), it.smallest_first}, {std::to_string(rule.max_launches), it.smallest_last}}}};
}

std::string in_words(const Noise& it) {
  if (!it.failed.empty()) return fmt::format("{}: {}\n", it.title, it.failed);
  const stats::PairedStopRule rule;
  const int each = launches_of_trial();
  std::string alarms =
      fmt::format("{} launches are too few for a comparison of {}: give a longer --budget", it.launches, each);
  if (it.redrawn) {
    alarms = fmt::format(
        "{} of {} comparisons of {} launches called a difference beyond ±{:g} %;\n"
        "                       of 10,000 redrawn from these launches {:.2g} % did, and {:.2g} % called any (5 % is "
        "fair)",
        it.called, it.trials, each, 100 * it.delta, 100 * *it.redrawn, 100 * *it.redrawn_any);
  }
  return fmt::format(
      "{}, against itself in {} launches:\n"
      "  false alarms         {}\n"
      "  launches differ by   {:.2g} % (standard deviation of what a process gets for life)\n"
      "  blocks differ by     {:.2g} % (within a launch)\n"
      "  smallest change      {:.2g} % is found with 95 % probability by {} launches, {:.2g} % by {}\n",
      it.title, it.launches, alarms, 100 * it.spread.between_launches, 100 * it.spread.between_blocks,
      100 * it.smallest_first, rule.first_look, 100 * it.smallest_last, rule.max_launches);
}

}  // namespace

Exit measure_noise(const Context& context, const std::string& budget_text) {
  const plan::ComparisonPlan plan = identical_sides(context.registry);
  if (plan.points.empty()) {
    throw Error(ErrorKind::usage,
                "this build has none of the experiments that noise is measured with "
                "(selftest_compare, ceiling_gemm)");
  }
  const Seconds budget = duration_option("--budget", budget_text);
  store::Store store = open_for_writing(context);
  ComparisonConditions conditions;
  conditions.protocol = "hot";
  conditions.budget = std::chrono::duration_cast<Nanoseconds>(budget);
  ComparisonSession session(context, store, "doctor", "noise", plan, conditions, this_build(), this_build());
  const auto began = std::chrono::steady_clock::now();
  std::vector<Noise> all;
  for (std::size_t i = 0; i < plan.points.size() && !session.interrupted(); ++i) {
    MeasuredPoint measured;
    measured.point = &plan.points[i];
    // Each kind of work gets an equal share of the time: at least three launches, and as many whole trials as fit.
    const Seconds until = budget * (static_cast<double>(i + 1) / static_cast<double>(plan.points.size()));
    while (!measured.failed && (measured.launches() < 3 || std::chrono::steady_clock::now() - began < until)) {
      session.launch(measured, 1, std::nullopt);
    }
    measured.stop = measured.failed ? measured.stop : "budget";
    refuse_unresolved(measured);
    session.keep(measured, session.judged(measured));
    all.push_back(noise_of(session, measured));
  }
  Exit exit = session.interrupted() ? Exit::incomplete : Exit::well;
  Json json = Json::array();
  std::string text;
  for (const Noise& it : all) {
    if (!it.failed.empty()) exit = worse(exit, Exit::incomplete);
    json.push_back(to_json(it));
    text += in_words(it);
  }
  if (context.console.json()) {
    context.console.print_document({{"noise", json}, {"run", session.run_uid()}, {"exit", static_cast<int>(exit)}});
  } else {
    context.console.print(text);
  }
  return exit;
}

}  // namespace syslab::cli
