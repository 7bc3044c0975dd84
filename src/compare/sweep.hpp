// A sweep of comparisons: measured, judged one by one and then together, stored, shown.
#pragma once

#include <string>
#include <vector>

#include "compare/session.hpp"

namespace syslab::cli {

struct SweptComparison {
  MeasuredPoint measured;
  verdict::Judgement judgement;
  std::string uid;
};

// Every point that can be measured, `already` (a pilot's) first where given. Points after an interruption are omitted.
std::vector<SweptComparison> measure_sweep(ComparisonSession& session, const plan::ComparisonPlan& plan,
                                           std::vector<MeasuredPoint> already = {});

// Benjamini–Hochberg over all of them; stores what each verdict became.
void settle_sweep(store::Store& store, std::vector<SweptComparison>& sweep);

// With --json a line per comparison; otherwise a table and a sentence each, or a summary if there are many.
void print_sweep(const Context& context, const ComparisonSession& session, const std::vector<SweptComparison>& sweep);
Json to_json(const ComparisonSession& session, const SweptComparison& comparison);

// The worst of all; 5 where nothing was compared at all. `missing`: points that were not reached.
Exit exit_of(const std::vector<SweptComparison>& sweep, std::size_t missing);

}  // namespace syslab::cli
