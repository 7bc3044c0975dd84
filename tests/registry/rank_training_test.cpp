#include "registry/rank_training.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "registry/registry.hpp"
#include "registry/values.hpp"

namespace syslab::registry {
namespace {

void even(const Params& params) {
  if (params.integer("batch") % params.integer("world_size") != 0) throw Error(ErrorKind::usage, "uneven");
}

std::optional<std::string> no_fp64(const Params& params, std::string_view) {
  if (params.text("precision") != "fp64") return std::nullopt;
  return "no fp64";
}

const std::vector<RungInfo>& ladder() {
  static const std::vector<RungInfo> rungs{{.name = "host", .teaches = "on the CPU"},
                                           {.name = "graph", .teaches = "recorded", .device = device::Kind::cuda}};
  return rungs;
}

RankTrainingCases cases() {
  return {.params = {{"model", {text("small"), text("tiny"), text("cpu10m")}, "sizes", true},
                     {"batch", {number(4)}, "rows"},
                     {"context", {number(512)}, "tokens"},
                     {"precision", {text("bf16"), text("fp32")}, "dtypes", true}},
          .ladder = ladder(),
          .expect = even,
          .refusal = no_fp64};
}

TEST(RankTraining, IsAnExperimentOfSeveralRanksOnceItHasATitleAndABody) {
  Builder builder = rank_training_experiment("fsdp", cases(), {"tiny"}, "no place in a graph");
  add_training_metrics(builder);
  const Experiment made = builder.title("t").runs([](worker::CaseContext&) {});
  EXPECT_TRUE(made.takes_ranks());
  EXPECT_EQ(made.find_axis("model")->values, Values{text("tiny")});
  EXPECT_TRUE(made.find_axis("model")->accepts(text("small"))) << "it can be asked for";
  EXPECT_EQ(made.find_axis("context")->values, Values{number(128)});
  for (const char* preset : {"smoke", "laptop"}) {
    EXPECT_EQ(made.presets.at(preset).at("device"), Values{text("cpu")});
    EXPECT_EQ(made.presets.at(preset).at("impl"), Values{text("host")});
  }
  ASSERT_EQ(made.skips.size(), 1U);
  EXPECT_EQ(made.skips[0].reason, "no place in a graph");
  EXPECT_TRUE(made.skips[0].applies({}, "graph"));
  EXPECT_FALSE(made.skips[0].applies({}, "host"));
  EXPECT_EQ(made.refusal({{"precision", "fp64"}}, "host"), "no fp64");
  EXPECT_THROW(made.expectation({{"batch", std::int64_t{3}}, {"world_size", std::int64_t{2}}}), Error);
  std::vector<std::string> metrics;
  for (const Metric& one : made.metrics) metrics.push_back(one.name);
  EXPECT_EQ(metrics, (std::vector<std::string>{"time", "tokens_per_second", "parameters", "loss"}));
}

}  // namespace
}  // namespace syslab::registry
