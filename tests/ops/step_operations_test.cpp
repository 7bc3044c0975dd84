// The operations of a training step (everything but products, norms and attention) as data: each, called on the inputs
// that it asks for, gives what its oracle expects.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/adamw/operation.hpp"
#include "ops/cross_entropy/operation.hpp"
#include "ops/elementwise/operation.hpp"
#include "ops/embedding/operation.hpp"
#include "ops/global_norm/operation.hpp"
#include "tests/ops/model_tensors.hpp"

namespace syslab::ops {
namespace {

struct Named {
  std::string name;
  Operation operation;
};

std::vector<Named> all() {
  std::vector<Named> operations;
  for (const auto pass : {Pass::forward, Pass::backward, Pass::both}) {
    operations.push_back({"cross_entropy " + std::string(to_string(pass)),
                          cross_entropy::operation({.rows = 20, .classes = 300, .dtype = DType::bf16}, pass,
                                                   cross_entropy::find_rung("naive"), 3)});
  }
  for (const auto pass : {Pass::forward, Pass::backward}) {
    operations.push_back({"embedding " + std::string(to_string(pass)),
                          embedding::operation({.rows = 50, .vocab = 20, .dim = 8, .x_dtype = DType::bf16}, pass,
                                               embedding::find_rung("naive"), 3)});
  }
  for (const auto copy : {std::optional<DType>{}, std::optional{DType::bf16}}) {
    operations.push_back(
        {"adamw", adamw::operation({.elements = 700, .copy_dtype = copy}, {}, 4, adamw::find_rung("naive"))});
  }
  operations.push_back({"global_norm", global_norm::operation({.elements = 900}, 1, global_norm::find_rung("naive"))});
  const auto& rung = elementwise::find_rung("naive");
  operations.push_back({"add", elementwise::add_operation({4, 33}, DType::f32, DType::bf16, rung)});
  return operations;
}

TEST(StepOperations, GiveWhatTheirOraclesExpect) {
  for (const Named& one : all()) {
    const Operation& operation = one.operation;
    std::mt19937 random(6);
    std::vector<Tensor> inputs, outputs;
    std::vector<TensorView> writable;
    for (const TensorSpec& spec : operation.inputs) inputs.emplace_back(spec.dtype, spec.shape).fill_normal(random);
    for (const TensorSpec& spec : operation.outputs) outputs.emplace_back(spec.dtype, spec.shape);
    for (Tensor& input : inputs) writable.push_back(input.view());
    if (operation.prepare) operation.prepare(writable, {});
    const Inputs in(writable.begin(), writable.end());
    Outputs out;
    for (Tensor& output : outputs) out.push_back(output.view());
    operation.call(in, out, {});
    const std::vector<Expected> expected = operation.expect(in);
    ASSERT_EQ(expected.size(), outputs.size()) << one.name;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<double> found = outputs[i].values();
      for (std::size_t at = 0; at < found.size(); ++at) {
        const double tolerance = expected[i].tolerance[expected[i].tolerance.size() == 1 ? 0 : at];
        ASSERT_LE(std::abs(found[at] - expected[i].value[at]), tolerance)
            << one.name << " " << operation.outputs[i].name << " " << at;
      }
    }
    EXPECT_GT(operation.bytes, 0);
  }
}

// The rows whose gradient the oracle of a cross-entropy computes, of 30 rows one in three; losses and their mean it
// computes of all.
std::vector<std::size_t> rows_checked(std::uint64_t seed) {
  const Operation operation =
      cross_entropy::operation({.rows = 30, .classes = 10}, Pass::both, cross_entropy::find_rung("naive"), seed, 100);
  Tensor logits(DType::f32, {30, 10}), targets(DType::f64, {30});
  std::mt19937 random(6);
  logits.fill_normal(random);
  std::vector<TensorView> in{logits.view(), targets.view()};
  operation.prepare(in, {});
  const std::vector<Expected> expected = operation.expect({in[0], in[1]});
  std::vector<std::size_t> rows;
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const Expected& one = expected[o];
    const bool gradient = operation.outputs[o].name == "dlogits";
    EXPECT_EQ(one.fraction, gradient ? 10.0 / 30 : 1.0) << operation.outputs[o].name;
    for (std::size_t i = 0; i < one.value.size(); ++i) {
      if (!gradient) {
        EXPECT_FALSE(std::isnan(one.value[i])) << operation.outputs[o].name;
      } else if (!std::isnan(one.value[i]) && (rows.empty() || rows.back() != i / 10)) {
        rows.push_back(i / 10);
      }
    }
    if (!gradient) continue;
    for (std::size_t i = 0; i < one.value.size(); ++i) {
      EXPECT_EQ(std::isnan(one.value[i]), std::ranges::count(rows, i / 10) == 0);
    }
  }
  return rows;
}

TEST(StepOperations, LargeOnesAreCheckedInPartAndTheSeedSaysWhere) {
  const std::vector<std::size_t> rows = rows_checked(3);
  ASSERT_EQ(rows.size(), 10U);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i] / 3, i) << "one of three neighbours";
  EXPECT_EQ(rows_checked(3), rows);
  EXPECT_NE(rows_checked(4), rows);
}

// A step from zero moments would not tell √v from v, nor β₂·v from nothing.
TEST(StepOperations, AdamwBeginsWithMomentsThatAreNotZero) {
  const Operation operation = adamw::operation({.elements = 100}, {}, 4, adamw::find_rung("naive"));
  std::vector<Tensor> inputs;
  std::vector<TensorView> in;
  for (const TensorSpec& spec : operation.inputs) inputs.emplace_back(spec.dtype, spec.shape);
  for (Tensor& input : inputs) in.push_back(input.view());
  operation.prepare(in, {});
  ASSERT_EQ(operation.inputs[1].name, "m");
  EXPECT_EQ(std::ranges::count(operation.prepared, "m"), 0) << "drawn by whoever runs it";
  const std::vector<double> v = inputs[2].values();
  EXPECT_TRUE(std::ranges::all_of(v, [](double value) { return value >= 0 && value < 1; }));
  EXPECT_GT(*std::ranges::max_element(v), 0.5);
}

}  // namespace
}  // namespace syslab::ops
