#include "trace/cupti_records.hpp"

#include <gtest/gtest.h>

#include "trace/attribution.hpp"

namespace syslab::trace {
namespace {

TEST(CuptiRecords, AKernelFindsTheSpanOfTheCallThatQueuedIt) {
  const std::vector<DeviceRecord> records{
      {.name = "sgemm", .begin_ns = 10, .end_ns = 30, .stream = 7, .correlation = 501},
      {.name = "norm", .begin_ns = 40, .end_ns = 45, .stream = 9, .correlation = 502},
      {.name = "nobody's", .begin_ns = 50, .end_ns = 51, .correlation = 503}};
  // As they come from several buffers: in no order, with calls that queued nothing among them.
  const std::vector<CorrelationRecord> calls{{502, 1}, {777, 9}, {501, 4}};
  const std::vector<Activity> found = join(records, calls);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].span, 3U);
  EXPECT_EQ(found[0].track, "stream 7");
  EXPECT_EQ(found[0].end - found[0].begin, Nanoseconds(20));
  EXPECT_EQ(found[1].span, 0U);
  EXPECT_EQ(found[2].span, std::nullopt);
}

TEST(CuptiRecords, OnlyReplaysHaveAGraphNode) {
  const std::vector<Activity> found = join({{.name = "a"}, {.name = "b", .graph_node = 5}}, {});
  EXPECT_EQ(found[0].graph_node, std::nullopt);
  EXPECT_EQ(found[1].graph_node, 5U);
}

TEST(CuptiRecords, ANodesCopiesBelongWhereItWasCaptured) {
  GraphNodes nodes;
  nodes.created(100, 3);
  nodes.created(101, std::nullopt);  // captured while no span was open
  nodes.cloned(100, 200);            // the executable graph's
  nodes.cloned(200, 300);            // and that of a copy of it
  nodes.cloned(101, 201);
  EXPECT_EQ(nodes.spans(), (std::map<std::uint64_t, std::size_t>{{100, 3}, {200, 3}, {300, 3}}));
}

// From records to tables: what a step of two kernels gives when it is run once and replayed once.
TEST(CuptiRecords, AReplayedStepGivesTheTablesOfTheStepThatWasCaptured) {
  using device::RangeKind;
  Trace trace;
  trace.spans = {{.name = "forward", .kind = RangeKind::phase},
                 {.name = "gemm", .kind = RangeKind::kernel, .kernel = "cuBLAS", .parent = 0},
                 {.name = "backward", .kind = RangeKind::phase},
                 {.name = "graph", .kind = RangeKind::kernel, .kernel = "replay"}};
  GraphNodes nodes;
  nodes.created(1, 1);
  nodes.created(2, 2);
  nodes.cloned(1, 11);
  nodes.cloned(2, 12);
  trace.graph_nodes = nodes.spans();
  trace.activities = join({{.name = "sgemm", .begin_ns = 100, .end_ns = 130, .correlation = 9, .graph_node = 11},
                           {.name = "fill", .begin_ns = 130, .end_ns = 134, .correlation = 9, .graph_node = 12}},
                          {{9, 4}});
  const std::vector<KernelStat> stats = kernel_stats(attribute(trace, 3));
  ASSERT_EQ(stats.size(), 4U);
  EXPECT_EQ(stats[2].phase + " " + stats[2].kernel, "backward kernel/fill");
  EXPECT_EQ(stats[3].phase + " " + stats[3].kernel, "forward gemm/sgemm");
}

TEST(KernelNames, AreReadAsTheSourceHasThem) {
  EXPECT_EQ(readable_kernel_name("_ZN6syslab3ops3runIfEEvPT_i"), "syslab::ops::run<float>");
  EXPECT_EQ(readable_kernel_name("_ZN6syslab12_GLOBAL__N_14copyEPfl"), "syslab::(anonymous namespace)::copy");
  EXPECT_EQ(readable_kernel_name("ampere_sgemm_128x64_tn"), "ampere_sgemm_128x64_tn") << "C's names are no C++";
  EXPECT_EQ(readable_kernel_name(nullptr), "(unnamed)");
  EXPECT_EQ(readable_kernel_name(""), "(unnamed)");
}

}  // namespace
}  // namespace syslab::trace
