#include "plan/breadth_first.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace syslab::plan {
namespace {

constexpr std::string_view kRanks = "world_size";

bool can_run(const PlannedCase& planned) { return !planned.skip_reason && planned.predicted_oom.empty(); }

void halve(std::size_t first, std::size_t last, int step, std::vector<int>& steps) {
  if (last - first < 2) return;
  const std::size_t middle = first + (last - first) / 2;
  steps[middle] = step;
  halve(first, middle, step + 1, steps);
  halve(middle, last, step + 1, steps);
}

// One axis of one experiment: its values in the plan's order, then the step of each.
class AxisSteps {
 public:
  void add(const Value& value) {
    if (order_.emplace(value, order_.size()).second) steps_ = halving_steps(order_.size());
  }
  int of(const Value& value) const { return steps_[order_.at(value)]; }

 private:
  std::map<Value, std::size_t> order_;
  std::vector<int> steps_;
};

class GridSteps {
 public:
  void add(const PlannedCase& planned) {
    for (const auto& [name, value] : planned.params) axes_[name].add(value);
    axes_[std::string(kRanks)].add(std::int64_t{planned.world_size});
  }
  int of(const PlannedCase& planned) const {
    int sum = axes_.at(std::string(kRanks)).of(std::int64_t{planned.world_size});
    for (const auto& [name, value] : planned.params) sum += axes_.at(name).of(value);
    return sum;
  }

 private:
  std::map<std::string, AxisSteps> axes_;
};

// One point of a grid, with the cases of all implementations.
struct Point {
  int step = 0;
  Nanoseconds time{};
  std::vector<PlannedCase> cases;
};

// case_uid is of experiment, version and parameters.
using PointKey = std::pair<std::string, int>;
PointKey key_of(const PlannedCase& planned) { return {planned.case_uid, planned.world_size}; }

std::vector<Point> points_of(std::vector<PlannedCase> cases) {
  std::map<const registry::Experiment*, GridSteps> grids;
  for (const PlannedCase& planned : cases) grids[planned.experiment].add(planned);
  std::vector<Point> points;
  std::map<PointKey, std::size_t> known;
  for (PlannedCase& planned : cases) {
    const auto [at, first] = known.try_emplace(key_of(planned), points.size());
    if (first) points.push_back({.step = grids.at(planned.experiment).of(planned), .time = {}, .cases = {}});
    Point& point = points[at->second];
    point.time += planned.predicted_time;
    point.cases.push_back(std::move(planned));
  }
  return points;
}

}  // namespace

std::vector<int> halving_steps(std::size_t count) {
  std::vector<int> steps(count, 0);
  if (count > 0) halve(0, count - 1, 1, steps);
  return steps;
}

std::vector<int> grid_steps(const std::vector<PlannedCase>& cases) {
  std::map<const registry::Experiment*, GridSteps> grids;
  for (const PlannedCase& planned : cases) grids[planned.experiment].add(planned);
  std::vector<int> steps;
  steps.reserve(cases.size());
  for (const PlannedCase& planned : cases) steps.push_back(grids.at(planned.experiment).of(planned));
  return steps;
}

void breadth_first(Plan& plan) {
  std::vector<PlannedCase> ordered, measured, not_run;
  for (PlannedCase& planned : plan.cases) {
    if (planned.task == Task::law) {
      ordered.push_back(std::move(planned));
    } else {
      (can_run(planned) ? measured : not_run).push_back(std::move(planned));
    }
  }
  std::vector<Point> points = points_of(std::move(measured));
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return std::tie(a.step, a.time) < std::tie(b.step, b.time); });
  const auto take = [&ordered](std::vector<PlannedCase>& cases) {
    std::move(cases.begin(), cases.end(), std::back_inserter(ordered));
  };
  for (Point& point : points) take(point.cases);
  take(not_run);
  plan.cases = std::move(ordered);
  for (std::size_t i = 0; i < plan.cases.size(); ++i) plan.cases[i].index = static_cast<int>(i);
}

}  // namespace syslab::plan
