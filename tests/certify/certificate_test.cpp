// Every strategy gives the bits of one process. What would be wrong with one shows in certificate_faults_test.cpp.
#include "certify/certificate.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/comm/backends.hpp"
#include "tests/parallel/ranks_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::certificate_difference;
using test::everything;
using test::with_ranks;

constexpr auto kEqual = std::nullopt;

TEST(Certificate, EveryStrategyGivesTheBitsOfOneProcess) {
  for (const StrategyInfo& info : strategies()) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      EXPECT_EQ(certificate_difference(everything(info.strategy), ranks), kEqual)
          << to_string(info.strategy) << " on " << ranks << " ranks";
    }
  }
}

TEST(Certificate, UnevenRowsNoRowsAndPartsChangeNothing) {
  for (const Strategy strategy : {Strategy::flat_copy, Strategy::bucketed}) {
    CertificateCase asked = everything(strategy);
    asked.parts = 2;
    asked.rows_of = {{5, 3}, {0, 5}, {8, 0}};
    EXPECT_EQ(certificate_difference(asked, 3), kEqual);
  }
}

TEST(Certificate, IsHandedOutOverAnyCommunicator) {
  with_ranks(3, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    for (const StrategyInfo& info : strategies()) {
      EXPECT_GT(certify(ranks, {.strategy = info.strategy, .wire = DType::bf16}, 7, compute, communication).compared,
                0);
    }
    // The plain stream, where work is done when its call returns, is as good.
    EXPECT_GT(certify(ranks, {.strategy = Strategy::overlap}, 7, {}, communication).compared, 0);
    EXPECT_GT(certify(ranks, {.strategy = Strategy::bucketed}, 7, {}, {}).compared, 0);
  });
}

TEST(Certificate, TrainsATiedWeightAndAFrozenParameterWhateverIsDrawn) {
  with_ranks(2, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    for (std::uint64_t seed = 0; seed < 40; seed += 4) {
      const Certified found = certify(ranks, {.strategy = Strategy::overlap}, seed, compute, communication);
      EXPECT_EQ(found.models, 4);
      EXPECT_GE(found.tied, 1) << seed;
      EXPECT_GE(found.frozen, 1) << seed;
    }
  });
  EXPECT_EQ(
      to_string(Certified{.models = 4, .tied = 1, .frozen = 2, .steps = 3}),
      "4 toy models with exact arithmetic, 1 with tied weights and 2 with frozen parameters, have the bits of one "
      "process after 3 steps");
  EXPECT_EQ(to_string(Certified{.models = 4, .steps = 3}),
            "4 toy models with exact arithmetic have the bits of one process after 3 steps");
}

TEST(Certificate, OwnersOfParametersTakeAGroupThatIsAddedAfterTheFirstStep) {
  CertificateCase asked = everything(Strategy::overlap);
  const Trained whole = train_alone(asked);
  asked.sharding = Sharding::optimizer;
  asked.groups = true;
  EXPECT_NE(train_alone(asked).weights, whole.weights) << "the second group has a rate of its own, and begins later";
  for (int ranks = 1; ranks <= 4; ++ranks) EXPECT_EQ(certificate_difference(asked, ranks), kEqual) << ranks;
  with_ranks(2, [](comm::Communicator& ranks, Stream compute, Stream communication) {
    const CertifiedWay owned{.sharding = Sharding::optimizer};
    const Certified found = certify(ranks, {.strategy = Strategy::overlap}, 3, compute, communication, owned);
    EXPECT_EQ(found.groups, 2);
    EXPECT_NE(to_string(found).find(", 2 with two parameter groups of which one is added after the first step, have"),
              std::string::npos)
        << to_string(found);
  });
}

class CertificateOver : public ::testing::TestWithParam<comm::Backend> {};

TEST_P(CertificateOver, ABackendHoldsForEveryStrategy) {
  const auto certified = [](comm::Communicator& ranks) {
    const device::OwnedStream compute = device::OwnedStream::queue(), communication = device::OwnedStream::queue();
    std::int64_t compared = 0;
    for (const StrategyInfo& info : strategies()) {
      compared += certify(ranks, {.strategy = info.strategy}, 11, compute, communication).compared;
    }
    return std::to_string(compared);
  };
  for (const comm::RankEnd& end : GetParam().run(3, {.limit = std::chrono::seconds(20)}, certified)) {
    EXPECT_TRUE(end.well()) << end.error;
    EXPECT_GT(std::stoi("0" + end.result), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, CertificateOver, ::testing::ValuesIn(comm::backends().begin(), comm::backends().end()),
                         [](const auto& named) { return named.param.name; });

TEST(Certificate, SaysWhenANumberWasRounded) {
  CertificateCase asked = everything(Strategy::overlap);
  asked.model.layers = std::vector<ToyLayer>(12, {6, 6});  // far beyond the bounds of certify/toy_network.hpp
  asked.model.rare = -1;
  asked.rows = 16;
  const auto found = certificate_difference(asked, 2);
  ASSERT_TRUE(found);
  EXPECT_NE(found->find("rounded"), std::string::npos) << *found;
}

}  // namespace
}  // namespace syslab::parallel
