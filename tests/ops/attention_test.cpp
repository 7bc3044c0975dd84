// The problem itself: masks, counts, the rules that every call must keep, and the ladder.
#include "ops/attention/attention.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "attention_fixture.hpp"
#include "device/cuda/launch.hpp"
#include "ops/attention/foreign.hpp"
#include "tests/ops/host_rungs.hpp"

namespace syslab::attention {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "accepted";
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(AttentionMask, TopLeftShowsKeysUpToTheQuerysOwnIndex) {
  const Problem p{.seq_q = 5, .seq_k = 3, .mask = Mask::top_left};
  EXPECT_EQ(p.visible_keys(0), 1);
  EXPECT_EQ(p.visible_keys(2), 3);
  EXPECT_EQ(p.visible_keys(4), 3);
}

TEST(AttentionMask, BottomRightShowsTheLastQueryEverything) {
  const Problem more_keys{.seq_q = 2, .seq_k = 5, .mask = Mask::bottom_right};
  EXPECT_EQ(more_keys.visible_keys(0), 4);
  EXPECT_EQ(more_keys.visible_keys(1), 5);
  const Problem more_queries{.seq_q = 5, .seq_k = 2, .mask = Mask::bottom_right};
  EXPECT_EQ(more_queries.visible_keys(2), 0);
  EXPECT_EQ(more_queries.visible_keys(3), 1);
  EXPECT_EQ(more_queries.visible_keys(4), 2);
}

TEST(AttentionMask, VisiblePairsIsTheSumOverRows) {
  for (const Mask mask : {Mask::none, Mask::top_left, Mask::bottom_right}) {
    for (std::int64_t seq_q = 1; seq_q <= 9; ++seq_q) {
      for (std::int64_t seq_k = 1; seq_k <= 9; ++seq_k) {
        const Problem p{.seq_q = seq_q, .seq_k = seq_k, .mask = mask};
        std::int64_t sum = 0;
        for (std::int64_t row = 0; row < seq_q; ++row) sum += p.visible_keys(row);
        EXPECT_EQ(p.visible_pairs(), sum) << to_string(p);
      }
    }
  }
}

TEST(AttentionCounts, FollowTheFormulas) {
  const Problem p{.batch = 2, .heads_q = 4, .heads_kv = 2, .seq_q = 128, .seq_k = 64, .head_dim = 32};
  EXPECT_EQ(forward_flops(p), 4.0 * 2 * 4 * 128 * 64 * 32);
  EXPECT_EQ(backward_flops(p), 10.0 * 2 * 4 * 128 * 64 * 32);
  const double q = 2 * 4 * 128 * 32, kv = 2 * 2 * 64 * 32, lse = 2 * 4 * 128;
  EXPECT_EQ(forward_bytes(p), 4 * (2 * q + 2 * kv + lse));
  EXPECT_EQ(backward_bytes(p), 4 * (4 * q + 4 * kv + lse));
  Problem half = p;
  half.dtype = DType::bf16;
  EXPECT_EQ(forward_bytes(half), 2 * (2 * q + 2 * kv) + 4 * lse);
}

TEST(AttentionProblem, ScaleDefaultsToOneOverRootHeadDim) {
  EXPECT_FLOAT_EQ((Problem{.head_dim = 64}.effective_scale()), 0.125F);
  EXPECT_FLOAT_EQ((Problem{.head_dim = 64, .scale = 2.0F}.effective_scale()), 2.0F);
}

TEST(AttentionValidate, NamesTheFieldAndWhatItMayHold) {
  EXPECT_SAYS(refusal([] { validate(Problem{.batch = 0}); }), "batch is 0; it may be 1 to");
  EXPECT_SAYS(refusal([] { validate(Problem{.heads_q = -1}); }), "heads_q is -1");
  EXPECT_SAYS(refusal([] { validate(Problem{.heads_kv = 0}); }), "heads_kv is 0");
  EXPECT_SAYS(refusal([] { validate(Problem{.seq_q = 0}); }), "seq_q is 0");
  EXPECT_SAYS(refusal([] { validate(Problem{.seq_k = 0}); }), "seq_k is 0");
  EXPECT_SAYS(refusal([] { validate(Problem{.head_dim = 0}); }), "head_dim is 0; it may be 1 to 256");
  EXPECT_SAYS(refusal([] { validate(Problem{.head_dim = 257}); }), "head_dim is 257; it may be 1 to 256");
  EXPECT_SAYS(refusal([] { validate(Problem{.heads_q = 4, .heads_kv = 3}); }), "heads_kv must divide heads_q");
  EXPECT_SAYS(refusal([] { validate(Problem{.scale = INFINITY}); }), "scale is inf; it must be finite");
  EXPECT_SAYS(refusal([] { validate(Problem{.batch = std::int64_t{1} << 30, .heads_q = 1 << 20, .seq_q = 1 << 20}); }),
              "beyond 64-bit");
  EXPECT_NO_THROW(validate(Problem{.heads_q = 4, .heads_kv = 2, .head_dim = 256}));
}

class ValidateTensors : public testing::Test {
 protected:
  Problem problem_{.batch = 2, .heads_q = 2, .heads_kv = 1, .seq_q = 5, .seq_k = 4, .head_dim = 3};
  Tensors tensors_{problem_, 1};
  ForwardArgs forward_ = tensors_.forward();
  BackwardArgs backward_ = tensors_.backward();

  std::string forward() {
    return refusal([&] { validate(problem_, forward_); });
  }
  std::string backward() {
    return refusal([&] { validate(problem_, backward_); });
  }
};

TEST_F(ValidateTensors, AcceptsWhatFits) {
  EXPECT_EQ(forward(), "accepted");
  EXPECT_EQ(backward(), "accepted");
}

TEST_F(ValidateTensors, RefusesAWrongShapeOfEachTensor) {
  const Shape wrong{2, 2, 5, 4};
  for (auto [member, name] : {std::pair{&ForwardArgs::q, "q "}, {&ForwardArgs::k, "k "}, {&ForwardArgs::v, "v "}}) {
    ForwardArgs args = forward_;
    (args.*member).shape = wrong;
    const std::string text = refusal([&] { validate(problem_, args); });
    EXPECT_SAYS(text, std::string(name) + "has shape (2, 2, 5, 4); the problem wants (2, ");
  }
  for (auto [member, name] : {std::pair{&ForwardArgs::out, "out "}, {&ForwardArgs::lse, "lse "}}) {
    ForwardArgs args = forward_;
    (args.*member).shape = wrong;
    EXPECT_SAYS(refusal([&] { validate(problem_, args); }), std::string(name) + "has shape");
  }
  for (auto [member, name] :
       {std::pair{&BackwardArgs::dq, "dq "}, {&BackwardArgs::dk, "dk "}, {&BackwardArgs::dv, "dv "}}) {
    BackwardArgs args = backward_;
    (args.*member).shape = wrong;
    EXPECT_SAYS(refusal([&] { validate(problem_, args); }), std::string(name) + "has shape");
  }
  backward_.dout.shape = wrong;
  EXPECT_SAYS(backward(), "dout has shape");
}

TEST_F(ValidateTensors, RefusesAWrongDtype) {
  forward_.k.dtype = DType::bf16;
  EXPECT_SAYS(forward(), "k is bf16; the problem wants fp32");
  backward_.lse.dtype = DType::f64;
  EXPECT_SAYS(backward(), "lse is fp64; the problem wants fp32");
}

TEST_F(ValidateTensors, RefusesAStridedLastDimensionAndANullPointer) {
  forward_.v.strides[3] = 2;
  EXPECT_SAYS(forward(), "v has strides (12, 12, 3, 2); the last one must be 1");
  forward_ = tensors_.forward();
  forward_.q.data = nullptr;
  EXPECT_SAYS(forward(), "q has no memory");
}

TEST_F(ValidateTensors, TakesAnyStrideOfALastDimensionOfOne) {
  problem_.head_dim = 1;
  Tensors thin(problem_, 1);
  ForwardArgs args = thin.forward();
  args.q.strides[3] = 7;
  EXPECT_NO_THROW(validate(problem_, args));
}

TEST_F(ValidateTensors, RefusesOutputsThatOverlapAnything) {
  forward_.out.data = const_cast<void*>(forward_.q.data);
  EXPECT_SAYS(forward(), "out shares memory with q");
  forward_ = tensors_.forward();
  forward_.lse.data = static_cast<float*>(forward_.out.data) + 3;
  EXPECT_SAYS(forward(), "out shares memory with lse");
  backward_.dk.data = backward_.dv.data;
  EXPECT_SAYS(backward(), "dk shares memory with dv");
  backward_ = tensors_.backward();
  backward_.dq.data = const_cast<void*>(backward_.dout.data);
  EXPECT_SAYS(backward(), "dq shares memory with dout");
}

TEST_F(ValidateTensors, RefusesAnOutputExpandedOntoItself) {
  forward_.out.strides[0] = 0;
  EXPECT_SAYS(forward(), "out has strides (0, 15, 3, 1), which put two of its elements into the same memory");
}

TEST_F(ValidateTensors, LetsInputsShareMemory) {
  forward_.v.data = forward_.k.data;
  EXPECT_EQ(forward(), "accepted");
}

TEST_F(ValidateTensors, AcceptsTheInterleavedPartsOfOnePackedTensor) {
  // (B, S, 3, H, D) holding dQ, dK and dV: ranges interleave, elements do not.
  const Problem p{.batch = 2, .heads_q = 2, .heads_kv = 2, .seq_q = 4, .seq_k = 4, .head_dim = 3};
  Tensors tensors(p, 1);
  BackwardArgs args = tensors.backward();
  std::vector<float> packed(2 * 4 * 3 * 2 * 3 + 1);
  int part = 0;
  for (TensorView* view : {&args.dq, &args.dk, &args.dv}) {
    view->data = packed.data() + part++ * 6;
    view->strides = {72, 3, 18, 1};
  }
  EXPECT_NO_THROW(validate(p, args));
  args.dk.data = static_cast<float*>(args.dk.data) + 1;
  EXPECT_SAYS(refusal([&] { validate(p, args); }), "dk shares memory with dv");
}

TEST(AttentionLadder, HasUniqueNamesAndSaysWhatEachRungTeaches) {
  std::set<std::string> names;
  for (const Rung& rung : ladder()) {
    EXPECT_TRUE(names.insert(rung.name).second) << rung.name;
    EXPECT_FALSE(rung.teaches.empty());
    EXPECT_FALSE(rung.dtypes.empty());
    EXPECT_EQ(&find_rung(rung.name), &rung);
    if (!rung.unavailable.empty()) continue;  // in this build it is a name and a reason
    EXPECT_TRUE(rung.forward && rung.backward && rung.supports && rung.workspace_bytes);
    for (const DType dtype : rung.dtypes)
      EXPECT_EQ(rung.supports({.head_dim = 64, .dtype = dtype}, Pass::forward), std::nullopt);
  }
}

TEST(AttentionLadder, NamesTheNearestRungForAnUnknownName) {
  EXPECT_SAYS(refusal([] { find_rung("naiv"); }), "'naive'");
}

// Records what it is asked and fills outputs with a constant.
class FakeChannel : public CallChannel {
 public:
  Nanoseconds call(std::string_view function, std::span<const NamedInput> inputs, std::span<const NamedOutput> outputs,
                   const Params& options) override {
    log = std::string(function) + ":";
    for (const NamedInput& input : inputs) log += " " + std::string(input.name);
    log += " ->";
    for (const NamedOutput& output : outputs) log += " " + std::string(output.name);
    log += " " + options.label();
    return Nanoseconds(1234);
  }
  std::string log;
};

TEST(ForeignRung, PassesNamedTensorsAndOptionsAndKeepsTheOtherSidesTime) {
  const auto channel = std::make_shared<FakeChannel>();
  const Rung rung = foreign_rung("mine", "Python", "abc", channel);
  Tensors tensors({.seq_q = 2, .seq_k = 2, .head_dim = 4, .mask = Mask::bottom_right}, 1);
  tensors.run_forward(rung);
  EXPECT_EQ(channel->log, "attention_forward: q k v -> out lse causal=2 scale=0.5");
  EXPECT_EQ(rung.last_call_time(), Nanoseconds(1234));
  tensors.run_backward(rung);
  EXPECT_EQ(channel->log, "attention_backward: q k v out lse dout -> dq dk dv causal=2 scale=0.5");
  EXPECT_FALSE(rung.deterministic);
  EXPECT_EQ(rung.language, "Python");
}

}  // namespace
}  // namespace syslab::attention
