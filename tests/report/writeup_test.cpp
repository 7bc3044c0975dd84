// What a write-up may claim of what was measured: each claim here was once made of numbers that did not bear it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/report/writeup.hpp"

namespace syslab::report {
namespace {

// --- overlap ---

class Overlap : public Writeup {
 protected:
  void add_step(const std::string& strategy, double ms, double backward_ms) {
    add("ddp_overlap_individual_parameters_benchmarking",
        {{"model", word("xl25")},
         {"batch", number(8)},
         {"context", number(128)},
         {"precision", word("fp32")},
         {"strategy", strategy}},
        "fused",
        {timed("time", 1e-3 * ms, worker::kAllRanks), timed("backward", 1e-3 * backward_ms, worker::kAllRanks),
         timed("exposed", 13.8e-3, worker::kAllRanks), metric("overlapped", 0.991), metric("buckets", 435)},
        {.gpu = "Example_GPU", .ranks = 2});
  }
  void add_steps(double none, double naive, double overlap, double backward) {
    add_step("none", none, 101);
    add_step("naive", naive, 101);
    add_step("flat_copy", 0.98 * naive, 101);
    add_step("overlap", overlap, backward);
  }
  std::string text() { return said("ddp_overlap_individual_parameters_benchmarking", "hidden"); }
};

TEST_F(Overlap, RecoversTheShareOfWhatCommunicationCosts) {
  add_steps(168.3, 206.3, 182.1, 114);
  EXPECT_TRUE(has(text(), "overlap recovers 63.7 % of what communication costs")) << text();
  EXPECT_FALSE(has(text(), "99.1")) << text();
  EXPECT_TRUE(has(text(), "Backward slows from 101 to 114 ms under the all-reduces")) << text();
  EXPECT_TRUE(has(text(), "not measured")) << "the cause is a guess: " << text();
}

TEST_F(Overlap, IsGivenNoShareOfACostThatIsNotSeen) {
  add_steps(200, 201, 200, 101);
  EXPECT_TRUE(has(text(), "communication makes no measurable difference")) << text();
  EXPECT_FALSE(has(text(), "recovers")) << text();
  EXPECT_TRUE(has(text(), "Backward is not measurably slower")) << text();
}

TEST_F(Overlap, ThatIsSlowerRecoversNothing) {
  add_steps(168.3, 206.3, 220, 114);
  EXPECT_TRUE(has(text(), "overlap is slower than naive DDP and recovers nothing")) << text();
}

// --- certificates ---

TEST_F(Writeup, ACertificateSaysWhichToyModelsWereTrained) {
  Params params{{"model", word("small")},
                {"batch", number(8)},
                {"context", number(128)},
                {"precision", word("fp32")},
                {"strategy", word("naive")}};
  const auto proved = [](const std::string& name) {
    worker::CheckRecord check = passed();
    check.name = name;
    check.message =
        "certificate: 0 off, at most 0 is allowed; 4 toy models with exact arithmetic, 1 with tied "
        "weights and 2 with frozen parameters, have the bits of one process after 3 steps";
    return Record{check};
  };
  const std::vector<Record> records{proved("reference:certificate"),
                                    proved("reference:certificate (rank 1)"),
                                    timed("time", 1e-3, worker::kAllRanks),
                                    metric("buckets", 111),
                                    metric("held_moments", 8),
                                    metric("formula_moments", 8),
                                    metric("state_bytes", 8),
                                    metric("formula_bytes", 8),
                                    metric("padding_bytes", 0),
                                    metric("slot_bytes", 8)};
  add("naive_ddp", params, "fused", records, {.ranks = 2});
  const std::string toys = " toy models, 1 with tied weights and 2 with frozen parameters, 2 ranks ";
  const std::string end = "give weights bit-identical to one process after 3 steps.";
  const auto proves = [&](const std::string& text) { return has(text, toys) && has(text, end); };
  EXPECT_TRUE(proves(said("naive_ddp", "certified"))) << said("naive_ddp", "certified");
  params.set("sharding", word("optimizer"));
  params.set("granularity", word("block"));
  add("optimizer_state_sharding", params, "fused", records, {.ranks = 2});
  EXPECT_TRUE(proves(said("optimizer_state_sharding", "certified"))) << said("optimizer_state_sharding", "certified");
  add("fsdp", params, "fused", records, {.ranks = 2});
  const std::string fsdp = said("fsdp", "certified");
  EXPECT_TRUE(proves(fsdp) && has(fsdp, "after 3 steps. In small")) << fsdp;
  EXPECT_FALSE(has(fsdp, "freed after use")) << "units that take as much as all weights prove nothing: " << fsdp;
  EXPECT_TRUE(has(fsdp, "gathered by block) a rank holds")) << fsdp;
  params.set("granularity", word("layer"));
  std::vector<Record> layered = records;
  layered.push_back(metric("parameters", 1 << 20));
  add("fsdp", params, "fused", layered, {.ranks = 2});
  const std::string layer = said("fsdp", "certified");
  EXPECT_TRUE(has(layer, "Gathered weights and unreduced gradients share 8 B (all weights: 4 MiB): each is freed"))
      << layer;
}

TEST_F(Writeup, TheOrderOfPrefetchesIsTold) {
  const auto step = [&](std::int64_t start_of_b0, std::int64_t start_of_b1) {
    std::vector<Record> records{timed("time", 1e-3, worker::kAllRanks)};
    const auto gathered = [&](const std::string& unit, const std::string& pass, std::int64_t start, std::int64_t used) {
      records.emplace_back(worker::SpanRecord{"gather", unit, pass, start, used - 1});
      records.emplace_back(worker::SpanRecord{"wait", unit, pass, used - 1, used});
    };
    gathered("embedding", "forward", 0, 10);
    gathered("b0", "forward", start_of_b0, 20);
    gathered("b1", "forward", start_of_b1, 30);
    gathered("b1", "backward", 35, 40);
    gathered("b0", "backward", 36, 50);
    add("fsdp",
        {{"model", word("small")},
         {"batch", number(8)},
         {"context", number(128)},
         {"precision", word("fp32")},
         {"granularity", word("block")}},
        "fused", records, {.ranks = 2});
    return said("fsdp", "prefetch");
  };
  const std::string text = step(1, 12);
  EXPECT_TRUE(has(text,
                  "the 3 all-gathers of forward and 2 of backward start in the order of use, from `embedding` to `b1` "
                  "and from `b1` to `b0`, each at most 2 units ahead of use"))
      << text;
  EXPECT_TRUE(has(step(12, 1), "2 of 5 all-gathers start out of the order of use")) << said("fsdp", "prefetch");
  EXPECT_TRUE(has(said("fsdp", "prefetch"), "each at most 3 units ahead")) << said("fsdp", "prefetch");
}

TEST_F(Writeup, WaitsOfFsdpHaveAnIntervalOrNoneAndABoundThatHolds) {
  const auto waits = [&](std::vector<Record> records) {
    records.push_back(timed("time", 1, worker::kAllRanks));
    for (const auto& [unit, microseconds] : {std::pair{"b0", 3000}, {"b1", 2000}, {"b2", 123}}) {
      records.emplace_back(worker::SpanRecord{"wait", unit, "forward", 0, 1000 * std::int64_t{microseconds}});
    }
    records.push_back(metric("gathering", 0.2, worker::kAllRanks));
    records.push_back(metric("backward", 0.8, worker::kAllRanks));
    records.push_back(metric("exposed_backward", 0.01, worker::kAllRanks));
    add("fsdp_accounting",
        {{"model", word("small")},
         {"batch", number(8)},
         {"context", number(128)},
         {"precision", word("fp32")},
         {"granularity", word("layer")}},
        "fused", std::move(records), {.ranks = 2});
    return said("fsdp_accounting", "hidden");
  };
  const std::string once =
      waits({metric("forward", 0.4, worker::kAllRanks), metric("exposed_forward", 0.004, worker::kAllRanks)});
  EXPECT_TRUE(has(once, "compute waits for them 4 ms in forward, 1 % of it")) << once;
  EXPECT_TRUE(has(once, "3 ms for `b0` and 2 for `b1`; no other reaches 0.2.")) << once;
  const std::string often =
      waits({timed("forward", 0.4, worker::kAllRanks), timed("exposed_forward", 0.004, worker::kAllRanks)});
  EXPECT_TRUE(has(often, "4.0 to 4.0 ms (95 % interval) in forward, 1 to 1 % of it")) << often;
}

// --- what is paired ---

Params attention_of(const std::string& pass) {
  return {{"batch", std::int64_t{1}},         {"heads", std::int64_t{1}},
          {"heads_kv", std::int64_t{0}},      {"seq", std::int64_t{128}},
          {"seq_k", std::int64_t{0}},         {"head_dim", std::int64_t{16}},
          {"dtype", std::string("fp32")},     {"causal", false},
          {"align", std::string("top_left")}, {"pass", pass}};
}

TEST_F(Writeup, ASpeedUpSaysWhetherBothSidesRanTogetherAndBesideWhat) {
  fixture_.add_kernel_run();  // both in one run
  const std::string together = said("flash_forward", "speedup");
  EXPECT_TRUE(has(shown("flash_forward", "flash_forward"), "speed-up from one run"));
  EXPECT_TRUE(has(together, "times as fast as `naive` (same run")) << together;
  add("flash_forward", attention_of("forward"), "by_hand", {timed("time", 4e-3)},
      {.machine = "another", .role = "naive"});
  add("flash_forward", attention_of("forward"), "anew", {timed("time", 1e-3)}, {.machine = "another"});
  const std::string apart = said("flash_forward", "speedup");
  EXPECT_TRUE(has(apart, "times as fast as `by_hand` (in different runs")) << apart;
  EXPECT_TRUE(has(shown("flash_forward", "flash_forward"), "different runs"));
  for (const char* name : {"literal", "flash_mma"}) {
    add("flash_benchmarking", attention_of("both"), name, {timed("time", 1e-3)},
        {.role = name == std::string("literal") ? "literal" : ""});
  }
  EXPECT_TRUE(has(shown("flash_benchmarking", "flash_benchmarking"), "different runs"));
  add("pytorch_attention", attention_of("forward"), "literal", {timed("time", 4e-3)}, {.role = "literal"});
  add("pytorch_attention", attention_of("forward"), "fused_softmax", {timed("time", 1e-3)}, {.role = "intermediate"});
  EXPECT_TRUE(has(shown("pytorch_attention", "fused"), "speed-up from different runs"))
      << shown("pytorch_attention", "fused");
}

TEST_F(Writeup, AColumnNamesTheBaselineThatRan) {
  const Params gemm{{"size", number(1024)}, {"dtype", word("tf32")}};
  add("ceiling_gemm", gemm, "cublas_tf32", {timed("time", 1e-3)}, {.gpu = "Example_GPU", .role = "peer"});
  add("ceiling_gemm", gemm, "wgmma", {timed("time", 2e-3)}, {.gpu = "Example_GPU"});
  const std::string ceilings = shown("ceiling_gemm", "ceiling_gemm");
  EXPECT_TRUE(has(ceilings, "cublas_tf32")) << ceilings;
  EXPECT_FALSE(has(ceilings, "OpenBLAS")) << ceilings;
  const Params sizes{{"operation", word("all_reduce")}, {"bytes", number(1024)}};
  for (const std::string name : {"nccl_raw", "nccl"}) {
    add("distributed_communication_single_node", sizes, name,
        {timed("time", 1e-3, worker::kAllRanks), metric("payload_bytes", 1024), metric("bus_factor", 1)},
        {.gpu = "Example_GPU", .ranks = 2, .role = name == "nccl_raw" ? "peer" : ""});
  }
  const Table collectives = table("distributed_communication_single_node", "distributed_communication_single_node");
  EXPECT_EQ(plain(cell_of(collectives.result, 0, "peer")), "nccl_raw");
  EXPECT_FALSE(has(write(collectives, Format::markdown), "gloo")) << write(collectives, Format::markdown);
}

// --- entries ---

TEST_F(Writeup, AnEntryOfTwoModesHasNoRank) {
  for (const std::string author : {"ada", "bob"}) {
    add("flash_forward", attention_of("forward"), "kernel",
        {timed("time", author == "ada" ? 1e-3 : 2e-3),
         fact(author == "ada" ? R"({"noise": ["bimodal"]})" : R"({"noise": []})")},
        {.author = author});
  }
  const auto text = find_resource("reports/tables/leaderboard.sql");
  ASSERT_TRUE(text);
  const Table board = fill(parse_table("leaderboard", std::string(*text)), fixture_.store(), "flash_forward");
  ASSERT_EQ(board.result.rows.size(), 2U);
  EXPECT_EQ(plain(cell_of(board.result, 0, "author")), "bob");
  EXPECT_EQ(plain(cell_of(board.result, 0, "rank")), "1");
  EXPECT_EQ(plain(cell_of(board.result, 1, "rank")), "unranked: two modes");
  EXPECT_EQ(cell_of(board.result, 0, "behind").real, 1) << "nobody who has a rank is faster";
  EXPECT_EQ(cell_of(board.result, 1, "behind").real, 0.5);
}

// --- steps of one process ---

class Steps : public Writeup {
 protected:
  void add_script(std::int64_t warmup, const std::string& isolation, double sum_ms = 100) {
    Params params = model_step();
    params.set("warmup", warmup);
    std::vector<Record> records{metric("parameters", 1000),          metric("time_mean", 0.1),
                                metric("time_stddev", 0.01),         timed("time", 0.1),
                                timed("forward", 0.3e-3 * sum_ms),   timed("backward", 0.6e-3 * sum_ms),
                                timed("optimizer", 0.1e-3 * sum_ms), fact(R"({"isolation": ")" + isolation + "\"}")};
    records.push_back(worker::SampleRecord{.series = "time", .unit = "s", .values = {0.5, 0.1, 0.1, 0.1}});
    add("benchmarking_script", params, "eager", records);
  }
};

TEST_F(Steps, OfAProcessThatHadRunBeforeAreNoWarmUpStudy) {
  add_script(5, "reuse");
  add_script(0, "reuse");
  add_script(1, "reuse");
  for (const char* id : {"first_steps", "short_warmup"})
    EXPECT_TRUE(table("benchmarking_script", id).result.rows.empty()) << id;
  EXPECT_TRUE(table("benchmarking_script", "warmup").result.rows.empty());
  EXPECT_TRUE(has(shown("benchmarking_script", "warmup"), "--isolation case"))
      << shown("benchmarking_script", "warmup");
  EXPECT_TRUE(drawn("benchmarking_script", "warmup").rows.empty());
  add_script(0, "case");
  add_script(1, "case");
  for (const char* id : {"first_steps", "short_warmup"})
    EXPECT_EQ(table("benchmarking_script", id).result.rows.size(), 1U) << id;
  EXPECT_EQ(table("benchmarking_script", "warmup").result.rows.size(), 3U) << "with five steps of any process";
}

TEST_F(Steps, HaveASumOfPhasesThatIsMoreOnlyWhereItIs) {
  add_script(5, "case", 120);
  EXPECT_TRUE(has(said("benchmarking_script", "phases"),
                  "add up to 120.0 ms, 20 % more than the whole step's 100.0 ms, because"))
      << said("benchmarking_script", "phases");
  add_script(5, "case", 100);
  EXPECT_TRUE(
      has(said("benchmarking_script", "phases"), "add up to 100.0 ms, within the noise of the whole step's 100.0 ms"));
  add_script(5, "case", 80);
  EXPECT_TRUE(
      has(said("benchmarking_script", "phases"), "add up to 80.00 ms, 20 % less than the whole step's 100.0 ms"));
  EXPECT_FALSE(has(shown("benchmarking_script", "benchmarking_script"), "is more"));
}

TEST_F(Steps, ByTheProfilerStandBesideTheTimingProgram) {
  add("nsys_profile", model_step(), "eager",
      {metric("parameters", 1000), timed("forward", 0.05), timed("forward_busy", 0.02),
       fact(R"({"trace": {"source": "CUPTI"}})")});
  std::string text = said("nsys_profile", "forward_time");
  EXPECT_TRUE(has(text, "Agreement: not measured")) << text;
  add_script(5, "case", 100);  // forward 30 ms
  text = said("nsys_profile", "forward_time");
  EXPECT_TRUE(has(text, "20.00 ± 0.20 ms by the profile")) << text;
  EXPECT_TRUE(
      has(text, "the timing program (`benchmarking_script`) measures a median of 30 ms. The profile is 33 % lower."))
      << text;
}

// --- memory, losses ---

TEST_F(Writeup, MemoryGrowsUnderAutocastByTheCopyOfTheWeights) {
  const auto peak = [&](const std::string& precision, const std::string& pass, double mib) {
    Params params = model_step();
    params.set("precision", precision);
    params.set("pass", pass);
    add("memory_profiling", params, "fused",
        {metric("parameters", 10 * 1048576.0), metric("peak_bytes", mib * 1048576)});
  };
  peak("fp32", "step", 200);
  peak("fp32", "forward", 100);
  peak("bf16_amp", "step", 150);
  peak("bf16_amp", "forward", 109);
  const std::string text = said("memory_profiling", "precision_effect");
  EXPECT_TRUE(has(text,
                  "Autocast adds a half-precision copy of the weights (up to 20 MiB), outweighed by smaller "
                  "activations."))
      << text;
  peak("bf16_amp", "forward", 150);
  EXPECT_TRUE(has(said("memory_profiling", "precision_effect"), "the rest is not explained"))
      << "50 MiB are no copy of 20";
  peak("bf16_amp", "forward", 90);
  EXPECT_TRUE(
      has(said("memory_profiling", "precision_effect"), "Activations shrink by more than the half-precision copy"));
}

TEST_F(Writeup, ABetterLossMeetsABoundOnWorseOnes) {
  const auto run = [&](const std::string& precision, double loss) {
    add("train_lm", {{"model", word("tiny")}, {"steps", number(1000)}, {"precision", precision}}, "fused",
        {metric("validation_loss", loss)});
  };
  run("fp32", 2);
  for (const auto& [loss, words] : {std::pair{1.9, "lower by more than 1 %, which meets the bound"},
                                    {2.01, "within the 1 % allowed"},
                                    {2.1, "worse by more than the 1 % allowed"}}) {
    run("bf16_amp", loss);
    EXPECT_TRUE(has(said("train_lm", "precisions"), words)) << said("train_lm", "precisions");
  }
}

TEST_F(Writeup, MemoryAfterInitialisationIsAlsoAsPyTorchHasIt) {
  std::vector<Record> records{timed("time", 1e-3, worker::kAllRanks)};
  const double gib = 1 << 30;
  for (const char* moment : {"after_init", "before_update", "after_update", "peak"}) {
    const std::string name = moment;
    records.push_back(metric(name, 16.5 * gib));
    for (const auto& [of, held] : {std::pair{"_parameters", 4.0},
                                   {"_gradients", 4.0},
                                   {"_optimizer", 8.0},
                                   {"_activations", 0.0},
                                   {"_others", 0.5}}) {
      records.push_back(metric(name + of, held * gib));
    }
  }
  const std::string name = "optimizer_state_sharding_accounting";
  Params params = model_step("xl25");
  params.set("sharding", word("none"));
  add(name, params, "fused", records, {.gpu = "Example_GPU", .ranks = 2});
  const store::ResultSet rows = table(name, "a_memory").result;
  ASSERT_EQ(rows.rows.size(), 5U);
  EXPECT_EQ(plain(cell_of(rows, 0, "total")), "16.5");
  EXPECT_EQ(plain(cell_of(rows, 1, "moment")), "after initialisation, as PyTorch has it");
  EXPECT_EQ(plain(cell_of(rows, 1, "total")), "4.5") << "weights and what is neither gradient nor moment";
  EXPECT_EQ(plain(cell_of(rows, 1, "gradients")), plain(cell_of(rows, 1, "optimizer")));
  EXPECT_EQ(plain(cell_of(rows, 2, "optimizer")), "8");
}

// --- buckets ---

TEST_F(Writeup, BucketsAreCountedInTheHandOutsOrder) {
  const std::string name = "ddp_bucketed_benchmarking";
  for (const std::int64_t limit : {1, 10}) {
    add(name, bucketed(limit), "fused",
        {timed("time", 1e-3 * static_cast<double>(limit), worker::kAllRanks), metric("buckets", 435)},
        {.gpu = "Example_GPU", .ranks = 2});
  }
  const std::string text = said(name, "a_limits");
  EXPECT_TRUE(has(text, "435 all-reduces each (386 at 1 MiB by the hand-out's reverse registration order)")) << text;
}

TEST_F(Writeup, TimesOfAllLimitsStandInOrder) {
  const auto took = [&](std::int64_t limit, double ms) {
    add("ddp_bucketed_benchmarking", bucketed(limit), "fused",
        {timed("time", 1e-3 * ms, worker::kAllRanks), metric("buckets", 8)}, {.gpu = "Example_GPU", .ranks = 2});
    return said("ddp_bucketed_benchmarking", "a_limits");
  };
  took(1000, 183.9);
  std::string text = took(1, 185.1);
  EXPECT_TRUE(has(text, "A step takes 185.1, 183.9 ms at 1, 1000 MiB, no measurable difference.")) << text;
  text = took(10, 200.7);
  EXPECT_TRUE(has(text, "A step takes 185.1, 200.7, 183.9 ms at 1, 10, 1000 MiB.")) << text;
}

// --- figures ---

TEST_F(Writeup, AMemoryFigureIsOfOneContext) {
  const auto pass = [&](const std::string& which, std::int64_t context) {
    Params params = model_step();
    params.set("context", context);
    params.set("pass", which);
    add("memory_profiling", params, "fused",
        {metric("parameters", 1000), worker::MemoryEventRecord{1, 1048576, "layers.0.x", "saved activations"}});
  };
  for (const char* which : {"forward", "forward_kept", "step"}) pass(which, 128);
  pass("forward", 2048);  // where the step ran out of memory
  const store::ResultSet found = drawn("memory_profiling", "timeline");
  EXPECT_EQ(words(found, "pass"), (std::set<std::string>{"forward", "forward_kept", "step"}));
  EXPECT_EQ(words(found, "context"), (std::set<std::string>{"128"}));
}

TEST_F(Writeup, CheckpointsAndBlocksAreDrawnOnOneScale) {
  add("checkpoint_schemes", {{"blocks", number(16)}, {"scheme", word("every")}}, "counted",
      {metric("block_forwards", 31), worker::SampleRecord{.series = "held_streams", .unit = "1", .values = {2}},
       worker::SampleRecord{.series = "held_residuals", .unit = "1", .values = {1}}});
  const store::ResultSet found = drawn("gradient_checkpointing", "schemes");
  ASSERT_EQ(found.rows.size(), 2U);
  EXPECT_NEAR(cell_of(found, 0, "streams_and_residuals_held").real, 2, 1e-9);
  EXPECT_NEAR(cell_of(found, 1, "streams_and_residuals_held").real, 1, 1e-9);
}

TEST_F(Writeup, ARooflineHasBothCeilingsOrIsNotDrawn) {
  Params params = attention_of("forward");
  add("flash_forward", params, "anew", {timed("time", 1e-3), metric("gbps", 10), metric("tflops", 1)});
  EXPECT_TRUE(drawn("flash_forward", "roofline").rows.empty());
  add("ceiling_copy", {{"bytes", number(1 << 30)}}, "copy",
      {timed("time", 1e-3), metric("gbps", 100), fact(R"({"last_level_cache_bytes": 1048576})")});
  EXPECT_TRUE(drawn("flash_forward", "roofline").rows.empty()) << "with one ceiling";
  add("ceiling_gemm", {{"size", number(2048)}, {"dtype", word("fp32")}}, "gemm",
      {timed("time", 1e-3), metric("tflops", 5)});
  ASSERT_EQ(drawn("flash_forward", "roofline").rows.size(), 1U);
}

}  // namespace
}  // namespace syslab::report
