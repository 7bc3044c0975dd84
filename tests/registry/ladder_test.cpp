#include "registry/ladder.hpp"

#include <gtest/gtest.h>

#include "tests/registry/other_tower.hpp"

namespace syslab::registry {
namespace {

struct Statement {
  std::string id, statement;
  bool against_oracle = false;
};

TEST(Ladder, AnAxisGoesOnTakingTheValuesThatOthersStandFor) {
  const Value fp32 = std::string("fp32"), bf16 = std::string("bf16"), fp64 = std::string("fp64");
  const std::vector<Param> list{{"seq", {std::int64_t{256}}, "queries"},
                                {"dtype", {fp32}, "of all", true, {bf16, fp64}}};
  const std::vector<Axis> axes = axes_of(list, {{"seq", pow2(3, 4)}, {"dtype", {bf16}}});
  ASSERT_EQ(axes.size(), 2U);
  EXPECT_EQ(axes[0].values, pow2(3, 4));
  EXPECT_TRUE(axes[0].also.empty());
  EXPECT_EQ(axes[1].values, Values{bf16});
  EXPECT_EQ(axes[1].also, (Values{fp64, fp32}));
  EXPECT_THROW(axes_of(list, {{"sek", pow2(3, 4)}}), Error);
}

TEST(Ladder, RungsBecomeImplementationsAndTheReferenceIsKnownByItsName) {
  const std::vector<Rung> ladder{
      {"reference", "exact", {DType::f64}},
      {"fast", "tiles", {DType::f32, DType::bf16}, true},
      {"wgmma", "asynchronous products", {DType::bf16}, false, "needs CUDA", Kind::cuda, 90}};
  const Experiment made = experiment("toy")
                              .title("A toy")
                              .implementations(implementations_of(ladder))
                              .laws(laws_of(std::vector<Statement>{{"toy.law", "holds", true}}))
                              .runs([](worker::CaseContext&) {});
  ASSERT_EQ(made.implementations.size(), 3U);
  EXPECT_EQ(made.implementations[1].unavailable, "");
  EXPECT_EQ(made.implementations[2].unavailable, "needs CUDA");
  EXPECT_EQ(made.implementations[1].device, "cpu");
  EXPECT_EQ(made.implementations[2].device, "cuda");
  EXPECT_EQ(made.implementations[2].minimum_sm, 90);
  EXPECT_TRUE(made.implementations[0].is_reference);
  EXPECT_FALSE(made.implementations[1].is_reference);
  EXPECT_FALSE(made.implementations[0].is_peer);
  EXPECT_TRUE(made.implementations[1].is_peer);
  EXPECT_EQ(made.implementations[1].teaches, "tiles");
  EXPECT_EQ(made.implementations[1].dtypes, (std::vector<std::string>{"fp32", "bf16"}));
  ASSERT_EQ(made.laws.size(), 1U);
  EXPECT_EQ(made.laws[0].id, "toy.law");
  EXPECT_EQ(made.laws[0].statement, "holds");
  EXPECT_TRUE(made.laws[0].against_reference);
}

}  // namespace
}  // namespace syslab::registry
