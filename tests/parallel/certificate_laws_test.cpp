// Laws of data parallelism over random models: every strategy, world size and schedule, every way to deal rows to ranks
// and parts, and any delay on any stream give the bits of one process.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "tests/laws/expect_law.hpp"
#include "tests/parallel/ranks_fixture.hpp"

namespace syslab::parallel {
namespace {

using property::drawn_size;
using property::expect_law;

// Rows dealt to ranks in blocks of any size, also none, in any order.
std::vector<RowBlock> dealt(std::int64_t rows, int ranks) {
  std::vector<std::int64_t> cuts{0, rows};
  for (int i = 1; i < ranks; ++i) cuts.push_back(drawn_size("cut", 0, static_cast<int>(rows) + 1));
  std::ranges::sort(cuts);
  std::vector<RowBlock> blocks;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) blocks.push_back({cuts[i], cuts[i + 1] - cuts[i]});
  std::rotate(blocks.begin(), blocks.begin() + drawn_size("rank of the first rows", 0, ranks), blocks.end());
  return blocks;
}

CertificateCase drawn(int ranks) {
  CertificateCase asked;
  asked.seed = static_cast<std::uint64_t>(drawn_size("seed", 0, 100'000));
  asked.model = drawn_model(asked.seed);
  asked.steps = drawn_size("steps", 1, 4);
  asked.rows = std::int64_t{1} << drawn_size("log2 of rows", 0, 5);
  asked.parts = drawn_size("parts", 1, 4);
  asked.rows_of = dealt(asked.rows, ranks);
  const int pieces = ToyNetwork(asked.model, {}).pieces().size();
  asked.sync.strategy = strategies()[static_cast<std::size_t>(drawn_size("strategy", 0, 6))].strategy;
  asked.sync.bucket_mb = {drawn_size("limit in bytes", 1, 400) / 0x1p20};
  std::vector<int> ends;
  for (int end = 1; end < pieces; ++end) {
    if (drawn_size("a bucket ends here", 0, 2) == 1) ends.push_back(end);
  }
  ends.push_back(pieces);
  constexpr std::array kCertified{Sharding::none, Sharding::optimizer, Sharding::zero1, Sharding::zero2};
  asked.sharding = kCertified[static_cast<std::size_t>(drawn_size("sharding", 0, kCertified.size()))];
  asked.model.alignment = ranks * drawn_size("alignment a rank", 1, 4);
  asked.slots = drawn_size("slots", 1, 4);
  constexpr std::array<std::optional<DType>, 3> kCopies{std::nullopt, DType::bf16, DType::f16};
  asked.copy = kCopies[static_cast<std::size_t>(drawn_size("copy", 0, kCopies.size()))];
  asked.sync.schedule = BucketSchedule(std::move(ends));
  return asked;
}

void expect_equal(const std::optional<std::string>& difference) {
  if (difference) RC_FAIL(*difference);
}

TEST(CertificateLaws, AnyStrategyAnyPlanAnyRanksGiveTheBitsOfOneProcess) {
  expect_law("parallel.certificate", 300, [](check::Observation&) {
    const int ranks = drawn_size("ranks", 1, 5);
    expect_equal(test::certificate_difference(drawn(ranks), ranks));
  });
}

TEST(CertificateLaws, AnyDelayOnAnyStreamChangesNothing) {
  expect_law("parallel.certificate_delays", 60, [](check::Observation&) {
    const int ranks = drawn_size("ranks", 2, 5);
    const auto seed = static_cast<std::uint64_t>(drawn_size("seed of the delays", 0, 100'000));
    const std::chrono::microseconds most(drawn_size("longest delay in µs", 1, 2000));
    expect_equal(test::certificate_difference(drawn(ranks), ranks, [&](int rank) {
      return test::Interference{.before_work = test::random_delays(seed + static_cast<std::uint64_t>(rank), most)};
    }));
  });
}

}  // namespace
}  // namespace syslab::parallel
