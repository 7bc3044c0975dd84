// The dispatch rule: which rung takes a problem that names none, and why.
#include "ops/attention/dispatch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "ops/cuda_rung.hpp"

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

namespace syslab::attention {
namespace {

constexpr Where kCpu{device::Kind::cpu}, kGpu{device::Kind::cuda, 80};

std::string refusal(const Problem& problem, Pass pass, const Where& where, Want want = Want::fastest) {
  try {
    dispatch(problem, pass, where, want);
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
  EXPECT_EQ(dispatch({.dtype = DType::f32}, Pass::forward, kCpu).rung->name, "flash_tiled");
  EXPECT_EQ(dispatch({.dtype = DType::f64}, Pass::backward, kCpu).rung->name, "reference");
}

TEST(AttentionDispatch, IsByRuleAndNotByPlaceOnTheLadder) {
  if (!ops::kBuiltWithCuda) GTEST_SKIP() << "this build has no rung for a GPU";
  const Problem half{.seq_q = 64, .seq_k = 64, .head_dim = 64, .dtype = DType::bf16};
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    EXPECT_EQ(dispatch(half, pass, kGpu).rung->name, "flash_mma");
    const Dispatched bitwise = dispatch(half, pass, kGpu, Want::deterministic);
    EXPECT_EQ(bitwise.rung->name, "flash_mma_deterministic");
    EXPECT_TRUE(bitwise.rung->deterministic);
    EXPECT_NE(bitwise.because, dispatch(half, pass, kGpu).because);
  }
}

TEST(AttentionDispatch, ARungThatNeedsANewerGpuIsPassedOver) {
  for (const Rung& rung : ladder()) {
    if (rung.device != device::Kind::cuda || !rung.unavailable.empty()) continue;
    const Where old{device::Kind::cuda, rung.minimum_sm - 1};
    const auto reason = reason_against(rung, {.head_dim = 64, .dtype = rung.dtypes.front()}, Pass::forward, old);
    ASSERT_TRUE(reason) << rung.name;
    EXPECT_SAYS(*reason, "needs compute capability");
  }
}

// Enough blocks for every multiprocessor of the one GPU that the rung is for.
constexpr Problem kMany{
    .batch = 4, .heads_q = 32, .heads_kv = 32, .seq_q = 4096, .seq_k = 4096, .head_dim = 64, .dtype = DType::bf16};

TEST(AttentionDispatch, HoppersRungIsForCapability90Alone) {
  const Rung& rung = find_rung("flash_wgmma");
  const auto refused_on = [&](int sm) {
    Rung there = rung;
    there.unavailable.clear();
    return reason_against(there, kMany, Pass::forward, {device::Kind::cuda, sm});
  };
  EXPECT_EQ(refused_on(90), std::nullopt);
  ASSERT_TRUE(refused_on(100));
  EXPECT_SAYS(*refused_on(100), "runs on compute capability 9.0 alone, this GPU has 10.0");
  ASSERT_TRUE(refused_on(80));
  EXPECT_SAYS(*refused_on(80), "needs compute capability 9.0, this GPU has 8.0");
}

TEST(AttentionDispatch, HoppersRungIsTakenWhereItWasMeasuredToBeFaster) {
  const auto row = std::find_if(dispatch_rows().begin(), dispatch_rows().end(),
                                [](const DispatchRow& it) { return it.rung == "flash_wgmma"; });
  ASSERT_NE(row, dispatch_rows().end());
  ASSERT_NE(row->applies, nullptr);
  const Where there{device::Kind::cuda, 90};
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    EXPECT_TRUE(row->applies(kMany, pass, there));
    Problem few = kMany;
    few.batch = few.heads_q = few.heads_kv = 1;
    EXPECT_EQ(row->applies(few, pass, there), pass == Pass::forward)
        << "32 blocks for 132 multiprocessors: only the forward pass divides the keys of a block";
    few.seq_q = few.seq_k = 1024;
    EXPECT_FALSE(row->applies(few, pass, there));
    Problem narrow = kMany;
    narrow.head_dim = 32;
    EXPECT_FALSE(row->applies(narrow, pass, there)) << "many heads of 4096 were not measured to be faster";
    EXPECT_FALSE(row->applies(kMany, pass, {device::Kind::cuda, 90, false})) << "the copy engine cannot walk them";
  }
  for (const auto& [head_dim, seq, forward, backward] :  // of one causal head: 8 to 256 blocks
       {std::tuple{64, 1024, false, false},
        {64, 2048, false, false},
        {64, 4096, true, false},
        {64, 16384, true, false},
        {64, 32768, true, true},
        {32, 4096, false, false},
        {32, 8192, true, false},
        {32, 32768, true, false},
        {128, 1024, false, false},
        {128, 2048, true, false},
        {128, 8192, true, false},
        {128, 16384, true, true}}) {
    Problem one = kMany;
    one.batch = one.heads_q = one.heads_kv = 1;
    one.seq_q = one.seq_k = seq, one.head_dim = head_dim, one.mask = Mask::top_left;
    EXPECT_EQ(row->applies(one, Pass::forward, there), forward) << to_string(one);
    EXPECT_EQ(row->applies(one, Pass::backward, there), backward) << to_string(one);
  }
  Problem decoding = kMany;
  decoding.seq_q = 1;
  EXPECT_FALSE(row->applies(decoding, Pass::forward, there)) << "one row of a group's 64";
  Problem wide = kMany;
  wide.head_dim = 256;
  EXPECT_TRUE(row->applies(wide, Pass::forward, there));
  EXPECT_TRUE(row->applies(wide, Pass::backward, there));
  Problem shared = kMany;  // blocks are of key/value heads in the backward pass
  shared.batch = 1;
  shared.heads_kv = 2;
  EXPECT_TRUE(row->applies(shared, Pass::forward, there));
  EXPECT_FALSE(row->applies(shared, Pass::backward, there));
}

TEST(AttentionDispatch, TheCopyEngineWalksForwardAlone) {
  float data = 0;
  TensorView view(&data, DType::f32, Shape{2, 3, 4, 5});
  EXPECT_TRUE(walkable({view, view}));
  view.strides[1] = 0;
  EXPECT_FALSE(walkable({view}));
  view.strides[1] = -20;
  EXPECT_FALSE(walkable({view}));
  TensorView one(&data, DType::f32, Shape{2, 1, 4, 5});
  one.strides[1] = 0;  // never stepped along
  EXPECT_TRUE(walkable({one}));
}

TEST(AttentionDispatch, GivesEveryReasonWhenNoneFits) {
  // Compute capability 0: no GPU's rung will do, and the CPU's are not there.
  const std::string text = refusal({}, Pass::forward, {device::Kind::cuda, 0});
  for (const DispatchRow& row : dispatch_rows()) {
    if (row.applies != nullptr) continue;
    EXPECT_SAYS(text, std::string(row.rung) + " ");
  }
}

}  // namespace
}  // namespace syslab::attention
