// Gradients that travel rounded, out of slots: each is rounded once and each sum once, whoever rounds.
#include <gtest/gtest.h>

#include "parallel/zero/bucket_slots.hpp"
#include "parallel/zero/parameters.hpp"
#include "tests/model/model_fixture.hpp"
#include "tests/model/refusal.hpp"
#include "tests/parallel/rounded_fixture.hpp"

namespace syslab::parallel {
namespace {

using test::RoundedCase;
using test::RoundedRun;
using test::with_ranks;
using test::wrong_elements;

TEST(RoundedGradients, AreRoundedOnceAndSoIsTheirSum) {
  const std::vector<std::vector<int>> written{{}, {0, 2}, {1, 3}, {0, 1, 2, 3}};
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    for (const DType wire : {DType::bf16, DType::f16}) {
      for (const std::vector<int>& some : written) {
        for (int ranks = 1; ranks <= 3; ++ranks) {
          for (const int slots : {1, 2, 5}) {
            EXPECT_EQ(wrong_elements({.sharding = sharding, .wire = wire, .written = some, .slots = slots}, ranks), 0)
                << to_string(sharding) << " in " << to_string(wire) << ", " << some.size() << " written, on " << ranks;
          }
        }
      }
    }
  }
}

TEST(RoundedGradients, OfPartsAreAddedInFull) {
  EXPECT_EQ(wrong_elements({.sharding = Sharding::zero2, .written = {0, 3}, .parts = 3}, 2), 0);
}

TEST(RoundedGradients, ThatNobodyWritesAreZeros) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    for (const std::vector<int>& unused : {std::vector<int>{0}, {1, 2}, {3}}) {
      EXPECT_EQ(wrong_elements({.sharding = sharding, .written = {0, 1}, .unused = unused}, 2), 0);
    }
  }
}

TEST(RoundedGradients, WaitForWhatIsLate) {
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    RoundedCase asked{.sharding = sharding, .written = {0, 2}, .slots = 1};
    asked.late_computing = std::chrono::milliseconds(3);
    EXPECT_EQ(wrong_elements(asked, 2), 0);
    asked.late_computing = {};
    asked.late_communication = std::chrono::milliseconds(10);
    EXPECT_EQ(wrong_elements(asked, 2), 0);
  }
}

// 2 slots of the largest bucket, 384 elements rounded, and of what is written in full: 288 (p1), 256 + 8 (p3) or all.
TEST(RoundedGradients, TakeSlotsOfTheSizeInWhichTheyTravel) {
  with_ranks(2, [](comm::Communicator& ranks, device::Stream compute, device::Stream communication) {
    const auto bytes = [&](Sharding sharding, std::vector<int> written) {
      const RoundedRun run({.sharding = sharding, .written = std::move(written)}, ranks, compute, communication);
      const std::size_t shard = sharding == Sharding::zero2 ? 4 * RoundedRun::kElements / 2 : 0;
      return run.sync().gradient_bytes() - shard;
    };
    const std::size_t slots = std::size_t{2} * 384 * 2;
    EXPECT_EQ(bytes(Sharding::zero1, {}), slots);
    EXPECT_EQ(bytes(Sharding::zero2, {0, 1, 2, 3}), slots);
    const auto aligned = [](std::size_t elements) { return (elements + 63) / 64 * 64; };
    EXPECT_EQ(bytes(Sharding::zero2, {0, 2, 3}), slots + std::size_t{2} * 4 * aligned(288));
    EXPECT_EQ(bytes(Sharding::zero2, {}), slots + std::size_t{2} * 4 * (aligned(95) + aligned(288)));
  });
}

// By products, in the dtype in which they compute, and where nothing is to be added to; else by a kernel on their way.
TEST(RoundedGradients, AreWrittenSoByProductsWhereNoPartIsAddedToThem) {
  const model::ParameterLayout layout(model::tiny_config(), model::kAlignedElements);
  const GradientPieces pieces = bracket_pieces(layout, DType::f32);
  const auto written = [&](model::Precision precision, const ZeroModelOptions& options, int ranks) {
    const auto made = rounded_gradients(layout, dtypes_of(precision, model::Variant::fused), options, ranks);
    return made ? static_cast<int>(made->written.size()) : -1;
  };
  const int products = 4 * 2 + 1;  // of each block Q·K·V, output, W1·W3, W2; the head
  ASSERT_EQ(pieces.size(), products + 2 * 2 + 2);
  constexpr auto kMixed = model::Precision::bf16_amp;
  for (const Sharding sharding : {Sharding::zero1, Sharding::zero2}) {
    ZeroModelOptions options{.sharding = sharding, .sync = {}};
    EXPECT_EQ(written(kMixed, options, 2), -1) << "as they lie";
    options.sync.wire = DType::bf16;
    EXPECT_EQ(written(kMixed, options, 1), -1) << "nothing travels";
    EXPECT_EQ(written(kMixed, options, 2), products);
    EXPECT_EQ(written(model::Precision::fp32, options, 2), 0);
    options.parts = 2;
    EXPECT_EQ(written(kMixed, options, 2), sharding == Sharding::zero1 ? 0 : products);
    options.sync.wire = DType::f16;
    EXPECT_EQ(written(kMixed, options, 2), 0);
    options.sync.wire = DType::f32;
    EXPECT_EQ(written(kMixed, options, 2), -1) << "as they lie";
  }
}

TEST(RoundedGradients, RefuseWhatIsNotSmallerAndPiecesThatThereAreNot) {
  with_ranks(2, [](comm::Communicator& ranks, device::Stream compute, device::Stream communication) {
    const auto made = [&](const RoundedCase& asked) { RoundedRun(asked, ranks, compute, communication); };
    EXPECT_TRUE(test::refuses([&] { made({.wire = DType::f32}); }, "travel in fp32"));
    EXPECT_TRUE(test::refuses([&] { made({.written = {4}}); }, "pieces from 0 to 3"));
    EXPECT_TRUE(test::refuses([&] { made({.written = {2, 1}}); }, "pieces 2 1"));
    EXPECT_TRUE(test::refuses([&] { made({.written = {1}, .slots = 0}); }, "0 slots"));
  });
}

}  // namespace
}  // namespace syslab::parallel
