// What of a model is whose: whole parameters with an owner each, and equal parts of a matrix's rows.
//
//   std::vector<std::int64_t> loads(4);                       // elements by rank, which further calls add to
//   const std::vector<int> owners = assign_owners(elements, loads);
//   rows_of(10, 4, 3).count;                                  // 1: parts are of 3 rows, the last has what is left
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syslab::parallel {

// An owner for each of `elements`, largest first to the smallest of `loads`, which grow by what they are given; of
// equals the first comes first, to the lowest rank.
std::vector<int> assign_owners(std::span<const std::int64_t> elements, std::vector<std::int64_t>& loads);

struct RowPart {
  std::int64_t padded = 0;            // ⌈rows / ranks⌉: of every rank, with rows of zeros behind the last
  std::int64_t first = 0, count = 0;  // of the matrix's own; a rank may have none
};
// Error(usage) unless there is a row, and rank is one of the ranks.
RowPart rows_of(std::int64_t rows, int ranks, int rank);

}  // namespace syslab::parallel
