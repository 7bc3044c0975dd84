// The two sides of a comparison, from words of the command line to pairs of cases.
//
//   compare NAME A:impl=naive B:impl=flash_tiled -a seq=128,512     two points: seq = 128 and seq = 512
//   compare NAME A:build=old/syslab                                 that program against this one, every case
//
// A side is any axis assignment (impl included), another build, or both. Axes that neither side assigns are shared:
// they form a grid, and every point of it is a comparison.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace syslab::plan {

struct SideSpec {
  bool given = false;                // a word of the command line names it
  std::vector<AxisAssignment> axes;  // one value each; `impl` among them
  std::string build;                 // path of a syslab; empty: this program
  const AxisAssignment* find(std::string_view axis) const;
  std::string label() const;  // "naive", "strategy=bucketed bucket_mb=25", "build old/syslab"; empty: nothing is said
};

struct Sides {
  SideSpec a, b;
};

// Takes the words that begin with "A:" or "B:" out of `words`. Several words of one side add up. `mine=NAME` is another
// way to write `impl=NAME`. Error(usage) for an axis without value, with several, or given twice.
Sides take_sides(std::vector<std::string>& words);

// One comparison: what both sides have in common, and the two cases.
struct ComparisonPoint {
  Params shared;            // axes of equal value on both sides
  std::string shared_impl;  // empty where the sides name theirs, or the experiment has none
  PlannedCase a, b;         // indices: 2i and 2i + 1 for point i
};

struct ComparisonPlan {
  std::vector<ComparisonPoint> points;
  Sides sides;
  std::vector<Submitted> mine;
  std::uint64_t root_seed = 0;
  std::shared_ptr<const registry::Registry> registry;  // of the selection: the cases' experiments lie there
};

// Fills in a side that was left out where there is only one thing it can mean: this program, when the other side is a
// build; the --mine implementation, when there is one and the other side names another. Error(usage) with what to write
// when a side is missing, when an axis is assigned both by -a and by a side, when the sides are the same (unless
// `same_on_purpose`), or when a point of one side could meet several of the other; and all errors of make_plan.
ComparisonPlan make_comparison_plan(const registry::Registry& registry, const Selection& selection, Sides sides,
                                    bool same_on_purpose);

}  // namespace syslab::plan
