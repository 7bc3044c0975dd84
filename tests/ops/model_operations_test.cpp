// The passes of the model's operators as operations: tensors, preparation, call and expectation fit together.
#include <algorithm>

#include "ops/rms_norm/operation.hpp"
#include "ops/rope/operation.hpp"
#include "ops/swiglu/operation.hpp"
#include "ops/weighted_sum/operation.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::ops {
namespace {

// Fills, prepares, calls, compares; gives back the worst error over its bound.
double worst_of(const Operation& operation) {
  std::mt19937 random(5);
  std::vector<Tensor> inputs, outputs;
  for (const TensorSpec& spec : operation.inputs) {
    inputs.emplace_back(spec.dtype, spec.shape);
    const auto& prepared = operation.prepared;
    if (std::find(prepared.begin(), prepared.end(), spec.name) == prepared.end()) inputs.back().fill_normal(random);
  }
  for (const TensorSpec& spec : operation.outputs) outputs.emplace_back(spec.dtype, spec.shape);
  std::vector<TensorView> in, out;
  for (Tensor& tensor : inputs) in.push_back(tensor.view());
  for (Tensor& tensor : outputs) out.push_back(tensor.view());
  if (operation.prepare) operation.prepare(in, {});
  const Inputs read(in.begin(), in.end());
  operation.call(read, out, {});
  const std::vector<Expected> expected = operation.expect(read);
  EXPECT_EQ(expected.size(), outputs.size());
  double worst = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    worst = std::max(worst, worst_ratio(outputs[i].values(), expected[i].value, expected[i].tolerance));
  }
  return worst;
}

// Of a contiguous problem every byte is counted once, the small tensors among them.
double bytes_of(const Operation& operation) {
  double bytes = 0;
  for (const auto* specs : {&operation.inputs, &operation.outputs}) {
    for (const TensorSpec& spec : *specs) bytes += static_cast<double>(spec.bytes());
  }
  return bytes;
}

const std::vector<Pass> kBoth = {Pass::forward, Pass::backward};

TEST(ModelOperations, ComeOutAsExpectedOnTheHost) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Pass pass : kBoth) {
      for (const bool add : {false, true}) {
        const rms_norm::Problem p{.rows = 9, .dim = 40, .x_dtype = dtype, .y_dtype = dtype, .add = add};
        const Operation norm = rms_norm::operation(p, pass, rms_norm::find_rung("naive"));
        EXPECT_LE(worst_of(norm), 1.0);
        EXPECT_EQ(norm.bytes, bytes_of(norm));
      }
      const Operation gate = swiglu::operation({9, 40, dtype}, pass, swiglu::find_rung("naive"));
      EXPECT_LE(worst_of(gate), 1.0);
      EXPECT_EQ(gate.bytes, bytes_of(gate));
      for (const char* rung : {"naive", "tiled"}) {
        const Operation sum = weighted_sum::operation({9, 40, dtype}, pass, weighted_sum::find_rung(rung));
        EXPECT_LE(worst_of(sum), 1.0);
        EXPECT_EQ(sum.bytes, bytes_of(sum));
      }
      for (const rope::Layout layout : {rope::Layout::interleaved, rope::Layout::halves}) {
        const rope::Problem p{2, 3, 9, 16, layout, dtype, DType::f32};
        const Operation turn = rope::operation(p, pass, rope::find_rung("naive"));
        EXPECT_LE(worst_of(turn), 1.0);
        EXPECT_EQ(turn.bytes, bytes_of(turn));
      }
    }
  }
}

// The naive rung called `rung` under another name, on that device. Nobody calls it.
template <typename Rung>
Rung other_on(device::Kind kind, const Rung& rung) {
  Rung other = rung;
  other.name = "other";
  other.device = kind;
  return other;
}

TEST(ModelOperations, HoldHalfPrecisionAgainstTheNaiveRungOfTheCpu) {
  const auto expect_held = [](const auto& naive, const auto& operation_in) {
    using device::Kind;
    EXPECT_TRUE(operation_in(DType::bf16, other_on(Kind::cpu, naive)).naive);
    EXPECT_TRUE(operation_in(DType::f16, other_on(Kind::cpu, naive)).naive);
    EXPECT_FALSE(operation_in(DType::f32, other_on(Kind::cpu, naive)).naive) << "fp32 has a derived bound alone";
    EXPECT_FALSE(operation_in(DType::bf16, naive).naive) << "the yardstick itself";
    const Operation on_gpu = operation_in(DType::bf16, other_on(Kind::cuda, naive));
    EXPECT_EQ(on_gpu.device, Kind::cuda);
    EXPECT_FALSE(on_gpu.naive) << "the CPU's rung cannot read a GPU's memory";
  };
  for (const Pass pass : kBoth) {
    expect_held(rms_norm::find_rung("naive"), [&](DType dtype, const rms_norm::Rung& rung) {
      return rms_norm::operation({.rows = 4, .dim = 8, .x_dtype = dtype, .y_dtype = dtype}, pass, rung);
    });
    expect_held(swiglu::find_rung("naive"), [&](DType dtype, const swiglu::Rung& rung) {
      return swiglu::operation({4, 8, dtype}, pass, rung);
    });
    expect_held(rope::find_rung("naive"), [&](DType dtype, const rope::Rung& rung) {
      return rope::operation({1, 1, 4, 8, rope::Layout::halves, dtype, dtype}, pass, rung);
    });
    expect_held(weighted_sum::find_rung("naive"), [&](DType dtype, const weighted_sum::Rung& rung) {
      return weighted_sum::operation({4, 8, dtype}, pass, rung);
    });
  }
}

}  // namespace
}  // namespace syslab::ops
