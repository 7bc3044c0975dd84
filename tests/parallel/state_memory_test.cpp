// What a rank holds and sends by how the state is sharded: the hand-outs' numbers and the ZeRO paper's.
#include "parallel/state_memory.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "parallel/fsdp/state.hpp"

namespace syslab::parallel {
namespace {

constexpr double kGiB = 1073741824, kXl25 = 1'998'235'200, kXl26 = 3'406'809'600;

double gib(double parameters, std::int64_t ranks, Sharding sharding) {
  return state_bytes(parameters, ranks, sharding, kFp32State).total() / kGiB;
}

TEST(StateMemory, TheThreeMomentsOfTheXlModels) {
  const StateBytes plain = state_bytes(kXl25, 2, Sharding::none, kFp32State);
  EXPECT_NEAR(plain.after_init() / kGiB, 7.44, 0.005);
  EXPECT_NEAR((plain.after_init() + plain.gradients) / kGiB, 14.89, 0.005);
  EXPECT_NEAR(plain.total() / kGiB, 29.78, 0.005);
  EXPECT_NEAR(gib(kXl25, 2, Sharding::optimizer), 22.33, 0.005);
  EXPECT_NEAR(gib(kXl25, 4, Sharding::optimizer), 18.61, 0.005);
  const StateBytes larger = state_bytes(kXl26, 2, Sharding::none, kFp32State);
  EXPECT_NEAR(larger.after_init() / kGiB, 12.69, 0.005);
  EXPECT_NEAR((larger.after_init() + larger.gradients) / kGiB, 25.38, 0.005);
  EXPECT_NEAR(larger.total() / kGiB, 50.77, 0.005);
  EXPECT_NEAR(gib(kXl26, 2, Sharding::optimizer), 38.07, 0.005);
  EXPECT_NEAR(gib(kXl26, 4, Sharding::optimizer), 31.73, 0.005);
}

// Table 1 of the ZeRO paper: 7.5 G parameters on 64 devices, in GB.
TEST(StateMemory, StagesOfZeroInMixedPrecision) {
  const auto gb = [](Sharding sharding) { return state_bytes(7.5e9, 64, sharding, kMixedState).total() / 1e9; };
  EXPECT_NEAR(gb(Sharding::none), 120, 0.05);
  EXPECT_NEAR(gb(Sharding::zero1), 31.4, 0.05);
  EXPECT_NEAR(gb(Sharding::zero2), 16.6, 0.05);
  EXPECT_NEAR(gb(Sharding::zero3), 1.9, 0.05);
}

// DDP, ZeRO-1, ZeRO-2, ZeRO-3 of the hand-outs' models on two ranks, fp32, in GB.
TEST(StateMemory, StagesOfZeroInFp32) {
  const struct {
    double parameters, plain, zero1, zero2, zero3;
  } kExpected[] = {
      {128'625'408, 2.1, 1.5, 1.3, 1.0},       {423'183'360, 6.8, 5.1, 4.2, 3.4},
      {969'411'840, 15.5, 11.6, 9.7, 7.8},     {1'998'235'200, 32.0, 24.0, 20.0, 16.0},
      {3'406'809'600, 54.5, 40.9, 34.1, 27.3}, {12'832'823'808, 205, 154, 128, 103},
  };
  for (const auto& one : kExpected) {
    const auto gb = [&](Sharding sharding) {
      return state_bytes(one.parameters, 2, sharding, kFp32State).total() / 1e9;
    };
    const double rounding = one.plain > 100 ? 0.51 : 0.051;
    EXPECT_NEAR(gb(Sharding::none), one.plain, rounding);
    EXPECT_NEAR(gb(Sharding::zero1), one.zero1, rounding);
    EXPECT_NEAR(gb(Sharding::zero2), one.zero2, rounding);
    EXPECT_NEAR(gb(Sharding::zero3), one.zero3, rounding);
  }
}

TEST(StateMemory, OneRankShardsNothingAndManyLeaveWhatIsReplicated) {
  for (const Sharding sharding : kShardings) {
    EXPECT_EQ(state_bytes(1000, 1, sharding, kFp32State).total(), 16000) << to_string(sharding);
    EXPECT_EQ(state_bytes(1000, 1, sharding, kMixedState).total(), 16000) << to_string(sharding);
  }
  const auto left = [](Sharding sharding, const StateWidths& widths) {
    return state_bytes(1000, 1'000'000'000, sharding, widths).total();
  };
  EXPECT_NEAR(left(Sharding::zero1, kFp32State), 8000, 1e-3);
  EXPECT_NEAR(left(Sharding::zero1, kMixedState), 4000, 1e-3);
  EXPECT_NEAR(left(Sharding::zero2, kFp32State), 4000, 1e-3);
  EXPECT_NEAR(left(Sharding::zero2, kMixedState), 2000, 1e-3);
  EXPECT_NEAR(left(Sharding::zero3, kFp32State), 0, 1e-3);
  EXPECT_THROW(state_bytes(1, 0, Sharding::none, kFp32State), Error);
}

// Two ranks, S bytes of gradients and as many of weights: S, 1.5 S in 2 S of time, S, S, 1.5 S.
TEST(StepTraffic, OfTwoRanks) {
  const auto of = [](Sharding sharding, std::int64_t micro_steps) {
    return step_traffic(100, 100, 2, sharding, micro_steps);
  };
  EXPECT_EQ(of(Sharding::none, 1).sent_bytes, 100);
  EXPECT_EQ(of(Sharding::optimizer, 1).sent_bytes, 150);
  EXPECT_EQ(of(Sharding::optimizer, 1).timed_bytes, 200);
  EXPECT_EQ(of(Sharding::zero1, 1).sent_bytes, 100);
  EXPECT_EQ(of(Sharding::zero2, 1).sent_bytes, 100);
  EXPECT_EQ(of(Sharding::zero3, 1).sent_bytes, 150);
  // Of four micro-steps plain data parallel and ZeRO-1 communicate the last.
  EXPECT_EQ(of(Sharding::none, 4).sent_bytes, 100);
  EXPECT_EQ(of(Sharding::zero1, 4).sent_bytes, 100);
  EXPECT_EQ(of(Sharding::zero2, 4).sent_bytes, 250);
  EXPECT_EQ(of(Sharding::zero3, 4).sent_bytes, 600);
  EXPECT_THROW(of(Sharding::none, 0), Error);
}

// With many ranks and Ψ of each: 2Ψ, 3Ψ, 2Ψ, 2Ψ, 3Ψ; ZeRO's paper, section 7. With one, nothing.
TEST(StepTraffic, OfManyRanksAndOfOne) {
  const double expected[] = {200, 300, 200, 200, 300};
  for (std::size_t i = 0; i < kShardings.size(); ++i) {
    EXPECT_NEAR(step_traffic(100, 100, 1'000'000'000, kShardings[i]).sent_bytes, expected[i], 1e-4);
    EXPECT_EQ(step_traffic(100, 100, 1, kShardings[i]).sent_bytes, 0);
    EXPECT_EQ(step_traffic(100, 100, 1, kShardings[i]).timed_bytes, 0);
  }
}

// fsdp_accounting (a): 25.38 GiB on two ranks, 12.69 GiB less than the sharded optimizer leaves; 65 norms stay whole.
TEST(FsdpState, OfTheXlModelOf2026) {
  const model::ModelConfig config = model::find_model("xl26");
  const FsdpState two = fsdp_state(config, 2, kFp32State);
  EXPECT_EQ(two.sharded_tensors, 226);
  EXPECT_EQ(two.replicated_tensors, 65);
  EXPECT_EQ(two.sharded_parameters + two.replicated_parameters, 3'406'809'600);
  EXPECT_EQ(two.padding, 0);
  EXPECT_NEAR(4.0 * static_cast<double>(two.replicated_parameters) / 1048576, 0.63, 0.01);
  EXPECT_EQ(4 * two.largest_parameters, 100 * 1048576);
  EXPECT_NEAR(two.rank_bytes / kGiB, 25.38, 0.01);
  EXPECT_NEAR(gib(kXl26, 2, Sharding::optimizer) - two.rank_bytes / kGiB, 12.69, 0.01);
  EXPECT_NEAR(gib(kXl26, 2, Sharding::none) - two.rank_bytes / kGiB, 25.38, 0.01);
  EXPECT_NEAR(fsdp_state(config, 4, kFp32State).rank_bytes / kGiB, 12.69, 0.01);
  EXPECT_EQ(fsdp_state(config, 1, kFp32State).rank_bytes, 16 * kXl26);
  EXPECT_THROW(fsdp_state(config, 0, kFp32State), Error);
}

TEST(FsdpState, RowsThatDoNotDivideArePadded) {
  const model::ModelConfig config{.vocab = 10, .context = 8, .d_model = 4, .d_ff = 6, .layers = 1, .heads = 2};
  // Rows: 10 and 10 of vocabulary, four projections and w2 of 4, w1 and w3 of 6. On 3 ranks: 2 · 2 · 4 for the
  // vocabulary, 2 · 4 for each projection, 2 · 6 for w2, nothing for w1 and w3.
  EXPECT_EQ(fsdp_state(config, 3, kFp32State).padding, 2 * 2 * 4 + 4 * 2 * 4 + 2 * 6);
  EXPECT_EQ(fsdp_state(config, 2, kFp32State).padding, 0);
}

}  // namespace
}  // namespace syslab::parallel
