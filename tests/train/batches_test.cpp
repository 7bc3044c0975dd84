#include "train/batches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/model/refusal.hpp"
#include "tests/temporary_folder.hpp"

namespace syslab::train {
namespace {

using test::refuses;

class Batches : public ::testing::Test {
 protected:
  // Token i of the file is i modulo 1000.
  TokenFile counting(std::int64_t size) {
    std::vector<std::uint16_t> ids(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint16_t>(i % 1000);
    test::write_bytes(folder_ / "t.bin", {reinterpret_cast<const char*>(ids.data()), 2 * ids.size()});
    return TokenFile(folder_ / "t.bin");
  }

  test::TemporaryFolder folder_;
};

TEST_F(Batches, RowsAreWindowsAndTargetsFollowByOne) {
  const TokenFile file = counting(1000);
  const TokenBatches batches(file, {.rows = 8, .context = 32, .vocab = 1000});
  Batch batch;
  for (std::uint64_t number = 0; number < 20; ++number) {
    batches.draw(number, batch);
    ASSERT_EQ(batch.x.size(), 8U * 32);
    for (std::int64_t row = 0; row < 8; ++row) {
      const std::int64_t start = batches.start(number, row);
      for (std::int64_t i = 0; i < 32; ++i) {
        ASSERT_EQ(batch.x[static_cast<std::size_t>(row * 32 + i)], start + i);
        ASSERT_EQ(batch.y[static_cast<std::size_t>(row * 32 + i)], start + i + 1);
      }
    }
  }
}

// 7 places, 7,000 draws: each is met 1,000 times, standard deviation 29.
TEST_F(Batches, EveryPlaceIsDrawnAndAllAlike) {
  const TokenFile file = counting(17);
  const TokenBatches batches(file, {.rows = 7, .context = 10, .vocab = 1000});
  std::vector<int> met(7);
  for (std::uint64_t number = 0; number < 1000; ++number) {
    for (std::int64_t row = 0; row < 7; ++row) ++met.at(static_cast<std::size_t>(batches.start(number, row)));
  }
  for (const int times : met) EXPECT_NEAR(times, 1000, 6 * 29.3);
}

TEST_F(Batches, AFileOfOneWindowIsEnoughAndOneTokenLessIsNot) {
  const TokenFile file = counting(11);
  Batch batch;
  TokenBatches(file, {.rows = 2, .context = 10, .vocab = 1000}).draw(5, batch);
  EXPECT_EQ(batch.y.back(), 10);
  EXPECT_TRUE(refuses([&] { TokenBatches(file, {.rows = 2, .context = 11, .vocab = 1000}); }, "has 11 tokens",
                      "context 11 takes 12"));
}

TEST_F(Batches, ARangeKeepsTheRestForValidation) {
  const TokenFile file = counting(1000);
  const TokenBatches train(file, {.rows = 50, .context = 10, .vocab = 1000}, 0, 900);
  const TokenBatches validation(file, {.rows = 50, .context = 10, .vocab = 1000}, 900, 1000);
  for (std::uint64_t number = 0; number < 20; ++number) {
    for (std::int64_t row = 0; row < 50; ++row) {
      EXPECT_LE(train.start(number, row) + 11, 900);
      EXPECT_GE(validation.start(number, row), 900);
      EXPECT_LE(validation.start(number, row) + 11, 1000);
    }
  }
  EXPECT_TRUE(refuses([&] { TokenBatches(file, {.context = 10}, 900, 1001); }, "tokens 900 to 1001", "which has 1000"));
}

TEST_F(Batches, AreTheSameAgainAndOthersUnderAnotherSeedOrNumber) {
  const TokenFile file = counting(5000);
  const BatchOptions options{.rows = 4, .context = 16, .vocab = 1000, .seed = 1};
  Batch one, two;
  TokenBatches(file, options).draw(7, one);
  TokenBatches(file, options).draw(7, two);
  EXPECT_EQ(one.x, two.x);
  TokenBatches(file, options).draw(8, two);
  EXPECT_NE(one.x, two.x);
  BatchOptions other = options;
  other.seed = 2;
  TokenBatches(file, other).draw(7, two);
  EXPECT_NE(one.x, two.x);
}

TEST_F(Batches, AnIdOutsideTheVocabularyIsRefusedWithItsPosition) {
  const TokenFile file = counting(200);
  const TokenBatches batches(file, {.rows = 1, .context = 198, .vocab = 150});
  Batch batch;
  EXPECT_TRUE(refuses([&] { batches.draw(0, batch); }, "token 150 at position 150", "vocabulary of 150"));
}

TEST(RandomBatches, AreUniformOverTheVocabularyAndShiftedByOne) {
  const RandomBatches batches({.rows = 3, .context = 1000, .vocab = 10});
  std::vector<int> met(10);
  Batch batch;
  for (std::uint64_t number = 0; number < 10; ++number) {
    batches.draw(number, batch);
    for (const std::int64_t id : batch.x) ++met.at(static_cast<std::size_t>(id));
    for (std::size_t i = 0; i < 3000; ++i) {
      if (i % 1000 == 999) continue;  // a row ends
      ASSERT_EQ(batch.y[i], batch.x[i + 1]);
    }
  }
  for (const int times : met) EXPECT_NEAR(times, 3000, 6 * std::sqrt(30'000 * 0.1 * 0.9));
}

TEST(RandomBatches, RefuseSizesThatCannotBe) {
  EXPECT_TRUE(refuses([] { RandomBatches({.rows = 0}); }, "rows is 0"));
  EXPECT_TRUE(refuses([] { RandomBatches({.context = -1}); }, "context is -1"));
  EXPECT_TRUE(refuses([] { RandomBatches({.vocab = 0}); }, "vocab is 0"));
  EXPECT_TRUE(refuses([] { RandomBatches({.rows = 4, .first_row = 2, .all_rows = 5}); }, "rows 2 to 6 of 5"));
}

}  // namespace
}  // namespace syslab::train
