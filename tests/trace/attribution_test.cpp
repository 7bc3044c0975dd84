#include "trace/attribution.hpp"

#include <gtest/gtest.h>

namespace syslab::trace {
namespace {

using device::RangeKind;

Nanoseconds ns(std::int64_t count) { return Nanoseconds(count); }

Span span(const char* name, RangeKind kind, std::optional<std::size_t> parent, std::int64_t begin, std::int64_t end,
          const char* kernel = "") {
  return {.name = name, .kind = kind, .kernel = kernel, .parent = parent, .begin = ns(begin), .end = ns(end)};
}

// forward › layers.3 › attn › attention(literal) › scores › gemm, and a norm beside it; backward › gemm
std::vector<Span> step() {
  return {span("step", RangeKind::scope, {}, 0, 1000),
          span("forward", RangeKind::phase, 0, 0, 600),
          span("layers.3", RangeKind::layer, 1, 10, 590),
          span("attn", RangeKind::part, 2, 20, 400),
          span("attention", RangeKind::kernel, 3, 30, 330, "literal"),
          span("scores", RangeKind::part, 4, 40, 140),
          span("gemm", RangeKind::kernel, 5, 50, 130, "BLAS"),
          span("softmax", RangeKind::kernel, 4, 150, 250, "loops"),
          span("rms_norm", RangeKind::kernel, 2, 450, 500, "naive"),
          span("backward", RangeKind::phase, 0, 600, 900),
          span("gemm", RangeKind::kernel, 9, 650, 850, "BLAS")};
}

TEST(Attribution, NamesTheInnermostPhaseLayerAndPart) {
  const Belonging found = belonging_of(step(), 6);
  EXPECT_EQ(found.phase, "forward");
  EXPECT_EQ(found.layer, "layers.3");
  EXPECT_EQ(found.part, "attn");
}

TEST(Attribution, AnOperationIsThePathFromTheOutermostCall) {
  EXPECT_EQ(belonging_of(step(), 6).operation, "attention.scores.gemm");
  EXPECT_EQ(belonging_of(step(), 7).operation, "attention.softmax");
  EXPECT_EQ(belonging_of(step(), 8).operation, "rms_norm");
  // A part around a call is the model's, and no part of the operator's name.
  EXPECT_EQ(belonging_of(step(), 4).operation, "attention");
}

TEST(Attribution, OutsideOfEverythingThereIsNothingToBelongTo) {
  const Belonging found = belonging_of(step(), std::nullopt);
  EXPECT_EQ(found.phase + found.layer + found.part + found.operation, "");
  EXPECT_EQ(belonging_of(step(), 99).phase, "");
}

TEST(HostActivities, ACallWithCallsInsideKeepsOnlyWhatTheyLeave) {
  const std::vector<Activity> all = host_activities(step());
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].name, "literal");
  EXPECT_EQ(all[0].end - all[0].begin, ns(300 - 80 - 100));
  EXPECT_EQ(all[1].end - all[1].begin, ns(80));
  Nanoseconds sum{};
  for (const Activity& one : all) sum += one.end - one.begin;
  EXPECT_EQ(sum, ns(300 + 50 + 200)) << "outermost calls, each once";
}

TEST(HostActivities, WorkOnAGpuIsNotTimedByTheHost) {
  std::vector<Span> spans = step();
  for (Span& one : spans) one.on_device = true;
  EXPECT_TRUE(host_activities(spans).empty());
}

Activity kernel(const char* name, std::int64_t begin, std::int64_t end, std::optional<std::size_t> span) {
  return {.name = name, .track = "stream 7", .begin = ns(begin), .end = ns(end), .span = span};
}

TEST(Attribution, KernelsBelongToTheSpanThatQueuedThemWheneverTheyRan) {
  Trace trace;
  trace.spans = step();
  // The GPU is late: the forward pass's product runs while the host is in backward.
  trace.activities = {kernel("sgemm", 700, 790, 6), kernel("norm", 600, 640, 8)};
  const std::vector<Attributed> found = attribute(trace);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].activity->name, "norm") << "in order of time";
  EXPECT_EQ(found[1].belongs.phase, "forward");
  EXPECT_EQ(found[1].belongs.operation, "attention.scores.gemm");
}

TEST(Attribution, NodesOfAGraphBelongWhereTheyWereCaptured) {
  Trace trace;
  trace.spans = step();
  trace.spans.push_back(span("replay", RangeKind::scope, {}, 2000, 2100));
  trace.graph_nodes = {{71, 6}, {72, 10}};
  trace.activities = {kernel("sgemm", 2000, 2010, 11), kernel("sgemm", 2020, 2050, 11),
                      kernel("other", 2060, 2070, 11)};
  trace.activities[0].graph_node = 71;
  trace.activities[1].graph_node = 72;
  trace.activities[2].graph_node = 99;  // captured before anybody listened
  const std::vector<Attributed> found = attribute(trace, 11);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].belongs.phase, "forward");
  EXPECT_EQ(found[1].belongs.phase, "backward");
  EXPECT_EQ(found[2].belongs.phase, "") << "the launch's own span, not a guess";
}

TEST(Attribution, WhatWasQueuedBeforeTheFirstSpanIsLeftOut) {
  Trace trace;
  trace.spans = step();
  trace.activities = {kernel("warm", 0, 10, 6), kernel("counted", 20, 30, 10),
                      kernel("nobody's", 20, 30, std::nullopt)};
  const std::vector<Attributed> found = attribute(trace, 9);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].activity->name, "counted");
}

TEST(KernelStats, SumByPhaseAndOverAll) {
  Trace trace;
  trace.spans = step();
  trace.activities = {kernel("sgemm", 0, 10, 6), kernel("sgemm", 20, 50, 6), kernel("sgemm", 60, 65, 10),
                      kernel("late", 70, 170, std::nullopt)};
  const std::vector<KernelStat> stats = kernel_stats(attribute(trace));
  ASSERT_EQ(stats.size(), 5U);
  EXPECT_EQ(stats[0].phase, "");
  EXPECT_EQ(stats[0].kernel, "kernel/late") << "of no operator; the longest total of a phase comes first";
  EXPECT_EQ(stats[1].kernel, "attention.scores.gemm/sgemm");
  EXPECT_EQ(stats[1].calls, 2);
  EXPECT_EQ(stats[3].phase, "backward");
  EXPECT_EQ(stats[3].kernel, "gemm/sgemm");
  EXPECT_EQ(stats[4].phase, "forward");
  EXPECT_EQ(stats[4].calls, 2);
  EXPECT_EQ(stats[4].total, ns(40));
  EXPECT_EQ(stats[4].least, ns(10));
  EXPECT_EQ(stats[4].most, ns(30));
}

TEST(KernelStats, CopiesStandBesideKernels) {
  Trace trace;
  trace.spans = step();
  trace.activities = {
      {.kind = ActivityKind::copy, .name = "host to device", .begin = ns(0), .end = ns(5), .bytes = 80}};
  EXPECT_EQ(kernel_stats(attribute(trace)).at(0).kernel, "copy/host to device");
}

TEST(CountCalls, CountsWhatTheHostAskedForByPhase) {
  EXPECT_EQ(count_calls(step(), "gemm"), 2);
  EXPECT_EQ(count_calls(step(), "gemm", "forward"), 1);
  EXPECT_EQ(count_calls(step(), "gemm", {}, 9), 1);
  EXPECT_EQ(count_calls(step(), "scores"), 0) << "a part is no call";
}

}  // namespace
}  // namespace syslab::trace
