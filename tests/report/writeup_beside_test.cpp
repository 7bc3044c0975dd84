// What a write-up says beside its tables and figures: each sentence here once said something that they contradict.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "report/handout_models.hpp"
#include "tests/report/writeup.hpp"

namespace syslab::report {
namespace {

class Beside : public Writeup {
 protected:
  // A training step whose standard deviation is that share of its mean, and one phase.
  void add_step(const std::string& model, double share, const std::string& machine = "box") {
    Params params = model_step(model);
    params.set("warmup", number(5));
    add("benchmarking_script", params, "eager",
        {metric("time_mean", 0.1), metric("time_stddev", 0.1 * share), timed("time", 0.1),
         metric("optimizer_mean", 0.02), metric("optimizer_stddev", model == "small" ? 0.004 : 0.001)},
        {.machine = machine, .gpu = "Example_GPU"});
  }
  std::string variability(const std::string& handout) {
    Table made = table("benchmarking_script", "variability");
    keep_models_of(handout, made.result);
    return write_sentences(made);
  }
};

TEST_F(Beside, VariabilityIsThatOfTheModelsThatTheHandOutAsksFor) {
  add_step("small", 0.001);
  add_step("large", 0.002);
  add_step("10B", 0.03);
  add_step("xl25", 0.04, "another");
  const std::string first = variability("2025"), second = variability("2026");
  EXPECT_TRUE(has(first, "(median of 3 configurations), at most 4.0 % (xl")) << first;
  EXPECT_TRUE(has(second, "(median of 3 configurations), at most 3.0 % (10B")) << second;
  EXPECT_TRUE(has(first, "of a phase alone up to 20 % (optimizer of small, `eager`: 20 ± 4 ms)")) << first;
}

TEST_F(Beside, VariabilityOfModelsOfBothHandOutsIsSaidOnce) {
  add_step("small", 0.001);
  add_step("large", 0.002);
  EXPECT_EQ(table("benchmarking_script", "variability").result.rows.size(), 1U);
  EXPECT_TRUE(has(variability("2026"), "(median of 2 configurations), at most 0.20 % (large")) << variability("2026");
}

TEST_F(Beside, AnAllocationOfScoresSaysHowManyMatricesItIs) {
  constexpr std::int64_t kMatrix = 1 << 20;
  for (const std::int64_t matrices : {1, 2}) {
    Params params = model_step();
    params.set("context", number(512));
    params.set("pass", word("forward"));
    add("memory_profiling", params, "eager",
        {metric("parameters", 1000), metric("scores_bytes", kMatrix),
         worker::MemoryEventRecord{1, matrices * kMatrix, "layers.0.attn.kept", "temporaries"}});
    const std::string text = said("memory_profiling", "largest_said");
    EXPECT_EQ(has(text, "; what softmax keeps is one matrix of B·H·T² scores, 1.000 MiB."), matrices == 1) << text;
    EXPECT_EQ(has(text, "softmax's exponentials and weights (2 × 1.000 MiB, B·H·T²)."), matrices == 2) << text;
  }
}

TEST_F(Beside, AllocationsOfBlocksAreToldOfOneBlock) {
  constexpr std::int64_t kMatrix = 1 << 30, kLogits = 3 * std::int64_t{4} * 4 * 512 * 10000;
  Params params = model_step();
  params.set("context", number(512));
  params.set("pass", word("forward"));
  std::vector<Record> records{metric("parameters", 1000), metric("scores_bytes", kMatrix)};
  for (const char* block : {"layers.0.", "layers.1."}) {
    records.emplace_back(worker::MemoryEventRecord{1, 2 * kMatrix, block + std::string("attn.kept"), "temporaries"});
    records.emplace_back(worker::MemoryEventRecord{1, 2 * kMatrix, "workspace", "temporaries"});
    records.emplace_back(worker::MemoryEventRecord{1, 1 << 28, block + std::string("ffn.gate_up"), "temporaries"});
  }
  records.emplace_back(worker::MemoryEventRecord{1, kLogits, "workspace", "temporaries"});
  add("memory_profiling", params, "eager", records);
  const std::string text = said("memory_profiling", "largest_said");
  EXPECT_TRUE(has(
      text,
      "the largest allocations are in each of 2 blocks: softmax's exponentials and weights (2 × 1.000 GiB, B·H·T²), "
      "attention's scores (2 × 1.000 GiB, B·H·T²), both inputs of SwiGLU (2 × 128 MiB); once: logits and loss "
      "(3 × 78.125 MiB, tokens × vocabulary)."))
      << text;
}

// So that a phase has the same colour in the timelines of DDP and of FSDP.
TEST_F(Beside, AGathersTimelineBeginsWithCompute) {
  add("fsdp_accounting", {{"model", word("small")}, {"context", number(128)}, {"granularity", word("layer")}}, "fused",
      {timed("time", 1e-3, worker::kAllRanks), metric("parameters", 1000),
       worker::SpanRecord{"wait", "lm_head.weight", "forward", 0, 30'000},
       worker::SpanRecord{"gather", "lm_head.weight", "forward", 0, 30'000},
       worker::SpanRecord{"compute", "forward", "phase", 0, 100'000}},
      {.ranks = 2});
  const store::ResultSet found = drawn("fsdp_accounting", "timeline");
  ASSERT_EQ(found.rows.size(), 3U);
  EXPECT_EQ(plain(cell_of(found, 0, "kind")), "forward");
  EXPECT_EQ(plain(cell_of(found, 1, "kind")), "all-gather");
  EXPECT_EQ(plain(cell_of(found, 2, "kind")), "wait");
}

TEST_F(Beside, GathersOfLayersAreCountedByBlock) {
  std::vector<Record> records{timed("time", 1e-3, worker::kAllRanks)};
  std::int64_t now = 0;
  const auto gathered = [&](const std::string& unit, const std::string& pass) {
    records.emplace_back(worker::SpanRecord{"gather", unit, pass, now, now + 5});
    now += 10;
    records.emplace_back(worker::SpanRecord{"wait", unit, pass, now - 1, now});
  };
  gathered("token_embeddings.weight", "forward");
  for (const char* block : {"layers.0", "layers.1"}) {
    for (const char* unit : {".attn.q_proj.weight", ".ffn.w2.weight"}) gathered(block + std::string(unit), "forward");
  }
  gathered("lm_head.weight", "forward");
  gathered("layers.1.attn.q_proj.weight", "backward");
  for (const char* unit : {".ffn.w2.weight", ".attn.q_proj.weight"})
    gathered("layers.0" + std::string(unit), "backward");
  add("fsdp",
      {{"model", word("small")},
       {"batch", number(8)},
       {"context", number(128)},
       {"precision", word("fp32")},
       {"granularity", word("layer")}},
      "fused", records, {.ranks = 2});
  const std::string text = said("fsdp", "prefetch");
  EXPECT_TRUE(
      has(text,
          "the 6 all-gathers of forward (2 a block; embeddings, LM head) and 3 of backward start in the order of "
          "use, from `token_embeddings` to `lm_head` and from `layers.1.attn.q_proj` to `layers.0.attn.q_proj`"))
      << text;
  EXPECT_TRUE(has(text, "Backward reuses the last two and needs no embeddings")) << text;
  EXPECT_FALSE(has(shown("fsdp", "steps"), "wire own")) << "says nothing to who does not know the axis";
}

TEST_F(Beside, PassesAloneSayWhenTheTableIsOfAnotherMachine) {
  const auto point = [&](const std::string& pass, const std::string& machine) {
    for (const bool ours : {false, true}) {
      add("flash_benchmarking",
          {{"batch", number(1)},
           {"heads", number(1)},
           {"heads_kv", number(0)},
           {"seq", number(128)},
           {"seq_k", number(0)},
           {"head_dim", number(64)},
           {"dtype", word("bf16")},
           {"causal", true},
           {"align", word("top_left")},
           {"pass", pass}},
          ours ? "flash_mma" : "literal", {timed("time", ours ? 1e-5 : 2e-5)},
          {.protocol = "do_bench", .machine = machine, .gpu = machine, .role = ours ? "" : "literal"});
    }
  };
  point("forward", "A_GPU");
  point("backward", "A_GPU");
  point("both", "B_GPU");
  std::string text = said("flash_benchmarking", "passes");
  EXPECT_TRUE(has(text, "in 1 of 80 configurations (A_GPU, on a second machine)")) << text;
  EXPECT_TRUE(
      has(text, "At T = 128, d = 64 `flash_mma` (bf16) takes 0.01 ms forward and 0.01 backward (unfused 0.02 and"))
      << text;
  EXPECT_FALSE(has(text, "failed")) << text;
  point("both", "A_GPU");
  add("flash_benchmarking", {{"seq", number(256)}, {"dtype", word("fp32")}, {"pass", word("both")}}, "flash_tf32", {},
      {.protocol = "do_bench", .gpu = "B_GPU", .status = Status::check_failed});
  text = said("flash_benchmarking", "passes");
  EXPECT_TRUE(has(text, " `flash_tf32` failed its check in one case (B_GPU), left out here.")) << text;
  EXPECT_FALSE(has(text, "not the machine")) << text;
}

TEST_F(Beside, TheFormulaOfBucketsIsSaidToMissWhatWasMeasured) {
  const auto limit = [&](std::int64_t kb, double buckets, double exposed, double forecast) {
    add("ddp_small_tensors",
        {{"tensors", number(1000)}, {"tensor_bytes", number(10240)}, {"bucket_kb", kb}, {"pace", 1.0}}, "shm",
        {timed("time", 1e-3, worker::kAllRanks), metric("exposed", exposed), metric("buckets", buckets),
         metric("forecast_exposed", forecast), metric("overhead", 4e-6), metric("rate", 5)},
        {.ranks = 2});
  };
  limit(10, 1000, 3e-3, 5e-3);
  limit(40, 250, 1e-4, 2e-3);
  limit(640, 16, 5e-4, 2e-4);
  limit(10240, 1, 2e-3, 1.8e-3);
  std::string text = said("ddp_small_tensors", "a_shown");
  EXPECT_TRUE(has(text, "and the least, 0.100, by 250 (limit 40 KiB). The formula of (b) misses it, probably because"))
      << text;
  limit(640, 16, 5e-5, 2e-4);
  text = said("ddp_small_tensors", "a_shown");
  EXPECT_TRUE(has(text, "its least at this limit, too")) << text;
}

// Of one machine a naive step alone, of another both strategies.
TEST_F(Beside, TimelinesOfBothStrategiesAreOfOneMachine) {
  const auto step = [&](const std::string& experiment, const std::string& strategy, const std::string& machine) {
    add(experiment,
        {{"model", word("xl25")},
         {"batch", number(8)},
         {"context", number(128)},
         {"precision", word("fp32")},
         {"strategy", strategy}},
        "fused",
        {metric("parameters", 1000), timed("time", 0.2, worker::kAllRanks),
         worker::SpanRecord{.track = "compute", .name = "backward", .category = "phase", .start_ns = 0, .end_ns = 100}},
        {.machine = machine, .gpu = machine, .ranks = 2});
  };
  const std::string name = "ddp_overlap_individual_parameters_benchmarking";
  step(name, "overlap", "A_GPU");
  step("naive_ddp_benchmarking", "naive", "B_GPU");
  step("ddp_bucketed_benchmarking", "overlap", "B_GPU");
  const store::ResultSet found = drawn(name, "timeline");
  EXPECT_EQ(words(found, "strategy"), (std::set<std::string>{"naive", "overlap"}));
  EXPECT_EQ(words(found, "device"), (std::set<std::string>{"B_GPU"}));
}

TEST_F(Beside, AGridOfAttentionHasTheFusedSoftmaxWhereItWasMeasured) {
  const auto point = [&](std::int64_t seq, const std::string& pass, const std::string& implementation, double ms) {
    add("pytorch_attention",
        {{"batch", number(8)},
         {"heads", number(1)},
         {"heads_kv", number(0)},
         {"seq", seq},
         {"seq_k", number(0)},
         {"head_dim", number(16)},
         {"dtype", word("fp32")},
         {"causal", false},
         {"align", word("top_left")},
         {"pass", pass}},
        implementation, {timed("time", 1e-3 * ms)}, {.role = implementation == "literal" ? "literal" : "intermediate"});
  };
  for (const char* pass : {"forward", "backward"}) {
    point(256, pass, "literal", 4);
    point(256, pass, "fused_softmax", 2);
    point(512, pass, "literal", 8);
  }
  const store::ResultSet rows = table("pytorch_attention", "a_grid").result;
  ASSERT_EQ(rows.rows.size(), 2U);
  EXPECT_EQ(plain(cell_of(rows, 0, "d16")), "4 / 4 → 2 / 2");
  EXPECT_EQ(plain(cell_of(rows, 1, "d16")), "8 / 8");
}

}  // namespace
}  // namespace syslab::report
