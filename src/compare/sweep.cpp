#include "compare/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compare/verdict_table.hpp"
#include "words/comparison_words.hpp"

namespace syslab::cli {
namespace {

bool was_skipped(const verdict::Judgement& it) {
  const auto harmless = [](const std::optional<Status>& status) {
    return status == Status::skipped || status == Status::unsupported;
  };
  return harmless(it.failed_a) || harmless(it.failed_b);
}

}  // namespace

std::vector<SweptComparison> measure_sweep(ComparisonSession& session, const plan::ComparisonPlan& plan,
                                           std::vector<MeasuredPoint> already) {
  std::vector<SweptComparison> sweep;
  for (std::size_t i = 0; i < plan.points.size() && !session.interrupted(); ++i) {
    SweptComparison comparison;
    if (i < already.size()) comparison.measured = std::move(already[i]);
    comparison.measured.point = &plan.points[i];
    if (comparison.measured.launches() == 0) comparison.measured.failed = session.obstacle(plan.points[i]);
    session.finish(comparison.measured, static_cast<int>(plan.points.size() - i));
    comparison.judgement = session.judged(comparison.measured);
    comparison.uid = session.keep(comparison.measured, comparison.judgement);
    sweep.push_back(std::move(comparison));
  }
  return sweep;
}

void settle_sweep(store::Store& store, std::vector<SweptComparison>& sweep) {
  std::vector<verdict::Judgement*> judgements;
  for (SweptComparison& comparison : sweep) judgements.push_back(&comparison.judgement);
  verdict::correct_for_sweep(judgements);
  std::vector<store::SweepVerdict> verdicts;
  for (const SweptComparison& comparison : sweep) {
    const verdict::Judgement& it = comparison.judgement;
    if (!it.q_value) continue;
    verdicts.push_back(
        {comparison.uid, it.tests, *it.q_value, std::string(stats::to_string(it.verdict)), words::reason(it)});
  }
  store.add_sweep_verdicts(verdicts);
}

Json to_json(const ComparisonSession& session, const SweptComparison& comparison) {
  const plan::ComparisonPoint& point = *comparison.measured.point;
  Json json = words::to_json(comparison.judgement);
  json["type"] = "comparison";
  json["comparison"] = comparison.uid;
  json["run"] = session.run_uid();
  json["experiment"] = point.a.experiment->id;
  json["params"] = point.shared.to_json();
  json["impl"] = point.shared_impl;
  json["side_a"] = session.side_json(point, 'A');
  json["side_b"] = session.side_json(point, 'B');
  json["stop"] = comparison.measured.stop;
  return json;
}

void print_sweep(const Context& context, const ComparisonSession& session, const std::vector<SweptComparison>& sweep) {
  const Console& console = context.console;
  if (console.json()) {
    for (const SweptComparison& comparison : sweep) console.print_line(to_json(session, comparison));
    return;
  }
  std::vector<VerdictLine> lines;
  for (const SweptComparison& comparison : sweep) {
    lines.push_back({session.title(*comparison.measured.point), comparison.judgement});
  }
  console.print(verdict_table(console, lines, session.label('A'), session.label('B')) +
                fmt::format("run {}; every launch of both sides is stored\n", session.run_uid()));
}

Exit exit_of(const std::vector<SweptComparison>& sweep, std::size_t missing) {
  Exit exit = missing > 0 ? Exit::incomplete : Exit::well;
  for (const SweptComparison& comparison : sweep) {
    exit = worse(exit, exit_of(comparison.judgement, comparison.measured.point->a.experiment->oom_is_an_answer));
    if (comparison.measured.stop == "interrupted") exit = worse(exit, Exit::incomplete);
  }
  const bool nothing =
      std::all_of(sweep.begin(), sweep.end(), [](const SweptComparison& it) { return was_skipped(it.judgement); });
  return nothing ? worse(exit, Exit::unclear) : exit;
}

}  // namespace syslab::cli
