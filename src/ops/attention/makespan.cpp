#include "ops/attention/makespan.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace syslab::attention {

double makespan(std::span<const int> units, int multiprocessors, const WorkCosts& costs) {
  std::vector<double> busy(static_cast<std::size_t>(multiprocessors), -costs.block);  // until when
  const std::size_t dealt = busy.size() * static_cast<std::size_t>(costs.resident);
  double longest = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (i == dealt) std::make_heap(busy.begin(), busy.end(), std::greater<>());
    if (i >= dealt) std::pop_heap(busy.begin(), busy.end(), std::greater<>());
    double& until = i < dealt ? busy[i % busy.size()] : busy.back();
    until += costs.block + units[i] * costs.shared;
    longest = std::max({longest, until, units[i] * costs.alone});
    if (i >= dealt) std::push_heap(busy.begin(), busy.end(), std::greater<>());
  }
  return longest;
}

}  // namespace syslab::attention
