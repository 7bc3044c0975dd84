// The dispatch rule: which rung takes a problem that names none, and why.
#include "ops/attention/dispatch.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"
#include "ops/cuda_rung.hpp"

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

namespace syslab::attention {
namespace {

constexpr Where kCpu{device::Kind::cpu}, kGpu{device::Kind::cuda, 80};

std::string refusal(const Problem& problem, Direction direction, const Where& where, Want want = Want::fastest) {
  try {
    dispatch(problem, direction, where, want);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "nothing was refused";
}

TEST(AttentionDispatch, EveryRowNamesARungOnceAndSaysWhy) {
  std::set<std::string_view> seen;
  for (const DispatchRow& row : dispatch_rows()) {
    EXPECT_NO_THROW(find_rung(row.rung)) << row.rung;
    EXPECT_FALSE(row.because.empty()) << row.rung;
    EXPECT_TRUE(row.applies != nullptr || seen.insert(row.rung).second) << row.rung;
  }
}

TEST(AttentionDispatch, TakesTiledOnTheCpuAndTheReferenceForDoubles) {
  EXPECT_EQ(dispatch({.dtype = DType::f32}, Direction::forward, kCpu).rung->name, "flash_tiled");
  EXPECT_EQ(dispatch({.dtype = DType::f64}, Direction::backward, kCpu).rung->name, "reference");
}

TEST(AttentionDispatch, IsByRuleAndNotByPlaceOnTheLadder) {
  if (!ops::kBuiltWithCuda) GTEST_SKIP() << "this build has no rung for a GPU";
  const Problem half{.seq_q = 64, .seq_k = 64, .head_dim = 64, .dtype = DType::bf16};
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    EXPECT_EQ(dispatch(half, direction, kGpu).rung->name, "flash_mma");
    const Dispatched bitwise = dispatch(half, direction, kGpu, Want::deterministic);
    EXPECT_EQ(bitwise.rung->name, "flash_mma_deterministic");
    EXPECT_TRUE(bitwise.rung->deterministic);
    EXPECT_NE(bitwise.because, dispatch(half, direction, kGpu).because);
  }
}

TEST(AttentionDispatch, ARungThatNeedsANewerGpuIsPassedOver) {
  for (const Rung& rung : ladder()) {
    if (rung.device != device::Kind::cuda || !rung.unavailable.empty()) continue;
    const Where old{device::Kind::cuda, rung.minimum_sm - 1};
    const auto reason = reason_against(rung, {.head_dim = 64, .dtype = rung.dtypes.front()}, Direction::forward, old);
    ASSERT_TRUE(reason) << rung.name;
    EXPECT_SAYS(*reason, "needs compute capability");
  }
}

TEST(AttentionDispatch, GivesEveryReasonWhenNoneFits) {
  // Compute capability 0: no GPU's rung will do, and the CPU's are not there.
  const std::string text = refusal({}, Direction::forward, {device::Kind::cuda, 0});
  for (const DispatchRow& row : dispatch_rows()) EXPECT_SAYS(text, std::string(row.rung) + " ");
}

}  // namespace
}  // namespace syslab::attention
