#include "registry/ladder.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "registry/registry.hpp"

namespace syslab::registry {
namespace {

TEST(Ladder, AnAxisGoesOnTakingTheValuesThatOthersStandFor) {
  const Value fp32 = std::string("fp32"), bf16 = std::string("bf16"), fp64 = std::string("fp64");
  const std::vector<Axis> list{{"seq", {std::int64_t{256}}, "queries"},
                               {"dtype", {fp32}, "of all", true, {bf16, fp64}}};
  const std::vector<Axis> axes = axes_of(list, {{"seq", pow2(3, 4)}, {"dtype", {bf16}}});
  ASSERT_EQ(axes.size(), 2U);
  EXPECT_EQ(axes[0].values, pow2(3, 4));
  EXPECT_TRUE(axes[0].also.empty());
  EXPECT_EQ(axes[1].values, Values{bf16});
  EXPECT_EQ(axes[1].also, (Values{fp64, fp32}));
  EXPECT_THROW(axes_of(list, {{"sek", pow2(3, 4)}}), Error);
}

TEST(Ladder, RungsBecomeImplementationsAndKeepTheirRoles) {
  const std::vector<RungInfo> ladder{
      {.name = "reference", .teaches = "exact", .dtypes = {DType::f64}, .role = Role::reference},
      {.name = "fast", .teaches = "tiles", .dtypes = {DType::f32, DType::bf16}, .role = Role::peer},
      {.name = "wgmma",
       .teaches = "asynchronous products",
       .dtypes = {DType::bf16},
       .device = device::Kind::cuda,
       .minimum_sm = 90,
       .maximum_sm = 90,
       .unavailable = "needs CUDA",
       .facts = {{"tile", "64 × 64", "queries × keys"}}}};
  const Experiment made = experiment("toy")
                              .title("A toy")
                              .implementations(implementations_of(ladder))
                              .laws({{"toy.law", "holds", true}})
                              .runs([](worker::CaseContext&) {});
  ASSERT_EQ(made.implementations.size(), 3U);
  EXPECT_EQ(made.implementations[1].unavailable, "");
  EXPECT_EQ(made.implementations[2].unavailable, "needs CUDA");
  EXPECT_EQ(made.implementations[1].device, DeviceKind::cpu);
  EXPECT_EQ(made.implementations[2].device, DeviceKind::cuda);
  EXPECT_EQ(made.implementations[2].minimum_sm, 90);
  EXPECT_EQ(made.implementations[2].maximum_sm, 90);
  EXPECT_EQ(made.implementations[0].role, Role::reference);
  EXPECT_EQ(made.implementations[1].role, Role::peer);
  EXPECT_EQ(made.implementations[2].role, Role::ours);
  EXPECT_EQ(names_of(ladder), (Values{std::string("fast"), std::string("wgmma")})) << "oracles are in no preset";
  EXPECT_EQ(made.implementations[1].teaches, "tiles");
  EXPECT_EQ(made.implementations[1].dtypes, (std::vector<std::string>{"fp32", "bf16"}));
  ASSERT_EQ(made.laws.size(), 1U);
  EXPECT_EQ(made.laws[0].id, "toy.law");
  EXPECT_EQ(made.laws[0].statement, "holds");
  EXPECT_TRUE(made.laws[0].against_oracle);
}

TEST(Ladder, FactsOfARungAreItsFieldsAndItsOwn) {
  const auto told = [](const RungInfo& rung) {
    std::string all;
    for (const RungFact& fact : facts_of(implementations_of(std::vector{rung}).front())) {
      all += fact.name + "=" + fact.value + (fact.unit.empty() ? "" : " " + fact.unit) + ";";
    }
    return all;
  };
  EXPECT_EQ(told({.name = "loops"}), "device=cpu;");
  EXPECT_EQ(told({.name = "plain", .dtypes = {DType::f32, DType::bf16}, .role = Role::naive, .op_by_op = true}),
            "device=cpu;role=naive;dtypes=fp32, bf16;op_by_op=1;");
  EXPECT_EQ(told({.name = "tf32",
                  .dtypes = {DType::f32},
                  .device = device::Kind::cuda,
                  .minimum_sm = 80,
                  .maximum_sm = 90,
                  .tf32 = true,
                  .facts = {{"tile", "64 × 16", "queries × keys"}}}),
            "device=cuda;dtypes=fp32;minimum_sm=80;maximum_sm=90;tile=64 × 16 queries × keys;tf32=1;");
}

}  // namespace
}  // namespace syslab::registry
