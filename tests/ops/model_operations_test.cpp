// The passes of the model's operators as operations: tensors, preparation, call and expectation fit together.
#include <algorithm>

#include "ops/rms_norm/operation.hpp"
#include "ops/rope/operation.hpp"
#include "ops/swiglu/operation.hpp"
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

const std::vector<Direction> kBoth = {Direction::forward, Direction::backward};

TEST(ModelOperations, ComeOutAsExpectedOnTheHost) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const Direction direction : kBoth) {
      for (const bool add : {false, true}) {
        const rms_norm::Problem p{.rows = 9, .dim = 40, .x_dtype = dtype, .y_dtype = dtype, .add = add};
        const Operation norm = rms_norm::operation(p, direction, rms_norm::find_rung("naive"));
        EXPECT_LE(worst_of(norm), 1.0);
        EXPECT_EQ(norm.bytes, bytes_of(norm));
      }
      const Operation gate = swiglu::operation({9, 40, dtype}, direction, swiglu::find_rung("naive"));
      EXPECT_LE(worst_of(gate), 1.0);
      EXPECT_EQ(gate.bytes, bytes_of(gate));
      for (const rope::Layout layout : {rope::Layout::interleaved, rope::Layout::halves}) {
        const rope::Problem p{2, 3, 9, 16, layout, dtype, DType::f32};
        const Operation turn = rope::operation(p, direction, rope::find_rung("naive"));
        EXPECT_LE(worst_of(turn), 1.0);
        EXPECT_EQ(turn.bytes, bytes_of(turn));
      }
    }
  }
}

TEST(ModelOperations, HoldHalfPrecisionAgainstTheNaiveRung) {
  const rms_norm::Problem norm{.rows = 4, .dim = 8, .x_dtype = DType::bf16, .y_dtype = DType::bf16};
  rms_norm::Rung other = rms_norm::find_rung("naive");
  other.name = "other";
  EXPECT_TRUE(rms_norm::operation(norm, Direction::forward, other).naive);
  EXPECT_FALSE(rms_norm::operation(norm, Direction::forward, rms_norm::find_rung("naive")).naive);
}

}  // namespace
}  // namespace syslab::ops
