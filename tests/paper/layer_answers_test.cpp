// The named numbers of one layer, and that their recounts agree wherever the case lies.
#include "paper/layer_answers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.hpp"
#include "tests/paper/machine.hpp"

namespace syslab::parallel {
namespace {

constexpr GatedLayer kLayer{.tokens = 65536, .d_model = 4096, .d_ff = 11008};

double number(const LayerAnswer& answer, const std::string& name) {
  for (const Number& one : answer.numbers) {
    if (one.name == name) return one.value;
  }
  ADD_FAILURE() << "no number is called " << name;
  return std::nan("");
}

bool has(const LayerAnswer& answer, const std::string& name) {
  return std::ranges::count(answer.numbers, name, &Number::name) > 0;
}

void expect_agreement(const LayerAnswer& answer) {
  std::set<std::string> names;
  for (const Recount& one : answer.recounts) {
    EXPECT_LE(std::abs(one.found - one.expected), one.tolerance) << one.name << ": " << one.how;
    EXPECT_TRUE(names.insert(one.name).second) << one.name << " twice";
  }
  names.clear();
  for (const Number& one : answer.numbers) EXPECT_TRUE(names.insert(one.name).second) << one.name << " twice";
}

TEST(LayerAnswers, RecountsAgreeForEveryStrategyOverManyRanks) {
  for (const GatedLayer& layer : {kLayer, GatedLayer{.tokens = 3, .d_model = 7, .d_ff = 5},
                                  GatedLayer{.tokens = 1 << 20, .d_model = 64, .d_ff = 16, .element_bytes = 4}}) {
    for (const std::int64_t n : {1, 2, 64, 1000}) {
      expect_agreement(answer_layer(Layout::data_parallel, layer, {n, 1}, kMachine));
      expect_agreement(answer_layer(Layout::fsdp, layer, {n, 1}, kMachine));
      expect_agreement(answer_layer(Layout::tensor_parallel, layer, {1, n}, kMachine));
    }
    for (const Grid grid : {Grid{1, 1}, Grid{4, 2}, Grid{16, 4}, Grid{100, 7}}) {
      expect_agreement(answer_layer(Layout::fsdp_tensor, layer, grid, kMachine));
    }
  }
}

TEST(LayerAnswers, NumbersAreThoseOfTheFormulas) {
  const LayerAnswer data = answer_layer(Layout::data_parallel, kLayer, {8, 1}, kMachine);
  EXPECT_DOUBLE_EQ(number(data, "forward_flops"), 6.0 * 65536 * 4096 * 11008 / 8);
  EXPECT_EQ(number(data, "forward_communication"), 0);
  EXPECT_DOUBLE_EQ(number(data, "backward_communication"), 12.0 * 4096 * 11008 * 7 / (8 * 1.8e11));
  EXPECT_NEAR(number(data, "backward_limit"), 26.64, 0.005);
  EXPECT_FALSE(has(data, "forward_limit")) << "nothing bounds a pass that sends nothing";
  const LayerAnswer tensor = answer_layer(Layout::tensor_parallel, kLayer, {1, 8}, kMachine);
  EXPECT_NEAR(number(tensor, "forward_limit"), 7.461, 0.0005);
  EXPECT_NEAR(number(tensor, "backward_limit"), 13.92, 0.005);
  const LayerAnswer both = answer_layer(Layout::fsdp_tensor, kLayer, {16, 4}, kMachine);
  EXPECT_NEAR(number(both, "forward_limit_overlapped"), 198.8, 0.05);
  EXPECT_NEAR(number(both, "forward_limit_serial"), 59.03, 0.005);
  EXPECT_EQ(number(both, "forward_grid_serial_data") * number(both, "forward_grid_serial_tensor"), 56);
}

TEST(LayerAnswers, RefusesWhatCannotBeCounted) {
  EXPECT_THROW(answer_layer(Layout::fsdp, kLayer, {1, 1}, {.flops_per_second = 1, .link_bytes_per_second = 1e30}),
               Error);
  EXPECT_THROW(answer_layer(Layout::fsdp, kLayer, {0, 1}, kMachine), Error);
  EXPECT_THROW(answer_layer(Layout::fsdp, kLayer, {1, 1}, {}), Error);
}

TEST(LayerAnswers, ReadsTheParametersItDeclares) {
  Params params;
  for (const Axis& one : layer_param_list()) params.set(one.name, one.values.front());
  EXPECT_EQ(layer_from(params).d_ff, 11008);
  EXPECT_EQ(layer_from(params).element_bytes, 2);
  EXPECT_DOUBLE_EQ(machine_from(params).flops_per_second, 4.6e14);
  EXPECT_DOUBLE_EQ(machine_from(params).link_bytes_per_second, 1.8e11);
}

}  // namespace
}  // namespace syslab::parallel
