#include "planning/owners.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

TEST(AssignOwners, GivesTheLargestFirstToWhomHasLeast) {
  std::vector<std::int64_t> loads(2, 0);
  EXPECT_EQ(assign_owners(std::vector<std::int64_t>{1, 5, 3, 3}, loads), (std::vector{0, 0, 1, 1}));
  EXPECT_EQ(loads, (std::vector<std::int64_t>{6, 6}));
  // What comes later goes on from there.
  EXPECT_EQ(assign_owners(std::vector<std::int64_t>{2, 9}, loads), (std::vector{1, 0}));
  EXPECT_EQ(loads, (std::vector<std::int64_t>{15, 8}));
}

TEST(RowsOf, EveryRowIsOfOneRankAndPartsAreOfOneSize) {
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 12, 100}) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const RowPart part = rows_of(rows, ranks, rank);
        EXPECT_EQ(part.first, next);
        EXPECT_LE(part.count, part.padded);
        EXPECT_GE(part.padded * ranks, rows);
        EXPECT_LT((part.padded - 1) * ranks, rows);
        next = part.first + part.count;
      }
      EXPECT_EQ(next, rows);
    }
  }
  EXPECT_EQ(rows_of(3, 4, 3).count, 0);
}

TEST(RowsOf, RefusesNoRowsAndStrangers) {
  EXPECT_THROW(rows_of(0, 2, 0), Error);
  EXPECT_THROW(rows_of(4, 2, 2), Error);
  EXPECT_THROW(rows_of(4, 2, -1), Error);
}

}  // namespace
}  // namespace syslab::parallel
