#include "planning/owners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>

#include "core/error.hpp"

namespace syslab::parallel {

std::vector<int> assign_owners(std::span<const std::int64_t> elements, std::vector<std::int64_t>& loads) {
  std::vector<std::size_t> order(elements.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t at) { return elements[at]; });
  std::vector<int> owners(elements.size());
  for (const std::size_t at : order) {
    const auto least = std::ranges::min_element(loads);
    owners[at] = static_cast<int>(least - loads.begin());
    *least += elements[at];
  }
  return owners;
}

RowPart rows_of(std::int64_t rows, int ranks, int rank) {
  if (rows < 1 || rank < 0 || rank >= ranks) {
    throw Error(ErrorKind::usage,
                fmt::format("the part of {} rows that rank {} of {} has: there must be a row, and the rank among them",
                            rows, rank, ranks));
  }
  RowPart part{.padded = rows / ranks + (rows % ranks == 0 ? 0 : 1)};
  part.first = std::min(rows, part.padded * rank);
  part.count = std::min(part.padded, rows - part.first);
  return part;
}

}  // namespace syslab::parallel
