// Tables of the profiling experiments over attempts that lie beside each other and must not be taken for one: of two
// machines, protocols, batches, modes or authors.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/report/writeup.hpp"

namespace syslab::report {
namespace {

// A phase's kernels in ms of one step; phases and kernels as v_kernel has them.
struct Kernel {
  std::string phase, operation;
  double ms;
};

class ProfileTables : public Writeup {
 protected:
  static Record timed(const std::string& name, double value, double low, double high) {
    return worker::MetricRecord{.name = name, .unit = "s", .value = value, .low = low, .high = high, .n = 10};
  }
  void add_profile(const std::vector<Kernel>& kernels, FixtureStore::Attempt attempt) {
    attempt.experiment = "nsys_profile";
    attempt.records = {passed(), metric("profiled_steps", 1), metric("parameters", 1000),
                       metric("attention_product_flops", 4e9), metric("softmax_flops", 1e9)};
    for (const Kernel& kernel : kernels) {
      const auto ns = static_cast<std::int64_t>(kernel.ms * 1e6);
      attempt.records.push_back(worker::KernelStatRecord{kernel.phase, kernel.operation + "/k", 1, ns, ns, ns});
    }
    fixture_.add(std::move(attempt));
  }
  void add_records(const std::string& experiment, std::vector<Record> records, FixtureStore::Attempt attempt) {
    attempt.experiment = experiment;
    attempt.records = {passed()};
    attempt.records.insert(attempt.records.end(), records.begin(), records.end());
    fixture_.add(std::move(attempt));
  }
  void add_memory(const std::string& precision, const std::string& pass, double mib, FixtureStore::Attempt attempt) {
    attempt.experiment = "memory_profiling";
    attempt.params.set("precision", precision);
    attempt.params.set("pass", pass);
    attempt.implementation = "fused";
    attempt.records = {passed(), metric("parameters", 1000), metric("peak_bytes", mib * 1048576)};
    fixture_.add(std::move(attempt));
  }

  void query(const std::string& experiment, const std::string& file) {
    const std::string name = "experiments/" + experiment + "/" + file;
    const std::vector<Resource> files = resources(name);
    ASSERT_EQ(files.size(), 1U) << name;
    Cell id;
    id.type = Cell::Type::text;
    id.text = experiment;
    const std::string sql(files[0].text);
    found_ =
        fixture_.store().query(sql, sql.find("?1") == std::string::npos ? std::vector<Cell>{} : std::vector<Cell>{id});
  }
  const Cell& at(std::size_t row, const std::string& column) const {
    const auto place = std::ranges::find(found_.columns, column);
    EXPECT_NE(place, found_.columns.end()) << column;
    return found_.rows.at(row).at(static_cast<std::size_t>(place - found_.columns.begin()));
  }
  double real(std::size_t row, const std::string& column) const { return at(row, column).real; }
  bool blank(std::size_t row, const std::string& column) const { return at(row, column).type == Cell::Type::null; }
  std::vector<std::string> texts(const std::string& column) const {
    std::vector<std::string> all;
    for (std::size_t row = 0; row < found_.rows.size(); ++row) {
      const Cell& cell = at(row, column);
      all.push_back(cell.type == Cell::Type::integer ? std::to_string(cell.integer) : cell.text);
    }
    std::ranges::sort(all);
    return all;
  }

  store::ResultSet found_;
};

Params step_of(std::int64_t batch, const std::string& mode = "train") {
  return {{"model", std::string("small")},
          {"batch", batch},
          {"context", std::int64_t{128}},
          {"precision", std::string("fp32")},
          {"mode", mode}};
}

const std::vector<Kernel> kInParts{{"forward", "gemm", 50},
                                   {"forward", "attention.scores.gemm", 10},
                                   {"forward", "attention.softmax.exp", 30},
                                   {"forward", "attention.values.gemm", 10},
                                   {"", "gemm", 150},
                                   {"", "attention.scores.gemm", 10},
                                   {"", "attention.softmax.exp", 20},
                                   {"", "attention.values.gemm", 10},
                                   {"", "adamw", 10}};
const std::vector<Kernel> kInOne{
    {"forward", "gemm", 75}, {"forward", "attention", 25}, {"", "gemm", 75}, {"", "attention", 25}};

TEST_F(ProfileTables, ChangesOfSharesAreOfOneAttemptEach) {
  add_profile(kInParts, {.params = step_of(4), .implementation = "eager"});
  add_profile(kInParts, {.params = step_of(4), .implementation = "eager", .machine = "another box"});
  query("nsys_profile", "tables/share_changes.sql");
  ASSERT_EQ(found_.rows.size(), 2U) << "two machines of one kind";
  EXPECT_NEAR(real(0, "forward"), 70, 1e-9);
  EXPECT_NEAR(real(1, "step"), 85, 1e-9);
}

TEST_F(ProfileTables, SharesOfAPanelAddUpToAHundred) {
  for (const char* protocol : {"cs336", "quick"}) {
    for (const char* machine : {"box", "another box"}) {
      for (const std::int64_t batch : {2, 4}) {
        add_profile(kInParts,
                    {.params = step_of(batch), .implementation = "eager", .protocol = protocol, .machine = machine});
      }
    }
  }
  add_profile(kInOne, {.params = step_of(8, "forward"), .implementation = "eager"});
  query("nsys_profile", "figures/shares.sql");
  double forward = 0;
  for (std::size_t row = 0; row < found_.rows.size(); ++row) {
    forward += at(row, "phase").text == "forward" ? real(row, "share") : 0;
  }
  EXPECT_NEAR(forward, 100, 1e-9);
}

TEST_F(ProfileTables, SharesOfProductsTellApartWhatDiffers) {
  add_profile(kInParts, {.params = step_of(2), .implementation = "eager"});
  add_profile(kInParts, {.params = step_of(4), .implementation = "eager"});
  add_profile(kInParts, {.params = step_of(4, "forward"), .implementation = "eager"});
  add_profile(kInParts, {.params = step_of(4), .implementation = "eager", .protocol = "quick"});
  add_profile(kInParts, {.params = step_of(4), .implementation = "eager", .author = "ada"});
  for (const char* table : {"tables/matmul_share.sql", "tables/attention.sql"}) {
    query("nsys_profile", table);
    EXPECT_EQ(texts("batch"), (std::vector<std::string>{"2", "4", "4", "4", "4"})) << table;
    EXPECT_EQ(texts("mode"), (std::vector<std::string>{"forward", "train", "train", "train", "train"})) << table;
    EXPECT_EQ(texts("protocol"), (std::vector<std::string>{"cs336", "cs336", "cs336", "cs336", "quick"})) << table;
    EXPECT_EQ(texts("implementation"), (std::vector<std::string>{"eager", "eager", "eager", "eager", "eager (ada)"}))
        << table;
  }
}

TEST_F(ProfileTables, AttentionInPartsHasNoShareInOneKernelAndTheOtherWayRound) {
  add_profile(kInParts, {.params = step_of(4), .implementation = "eager"});
  query("nsys_profile", "tables/matmul_share.sql");
  ASSERT_EQ(found_.rows.size(), 1U);
  EXPECT_TRUE(blank(0, "fused"));
  EXPECT_NEAR(real(0, "softmax"), 10, 1e-9);
  add_profile(kInOne, {.params = step_of(4), .implementation = "fused"});
  query("nsys_profile", "tables/matmul_share.sql");
  ASSERT_EQ(found_.rows.size(), 2U);
  const std::size_t fused = at(0, "implementation").text == "fused" ? 0 : 1;
  EXPECT_NEAR(real(fused, "fused"), 25, 1e-9);
  EXPECT_TRUE(blank(fused, "softmax"));
}

// One meaning each: a number was measured, 0 too, and what there is nothing of has no value.
TEST_F(ProfileTables, SharesOfWhatAModeDoesNotHaveAreNoZeros) {
  add_profile(kInParts, {.params = step_of(4, "forward"), .implementation = "eager"});
  add_profile(kInOne, {.params = step_of(4), .implementation = "fused"});
  query("nsys_profile", "tables/matmul_share.sql");
  ASSERT_EQ(found_.rows.size(), 2U);
  const std::size_t fused = at(0, "implementation").text == "fused" ? 0 : 1, forward = 1 - fused;
  for (const char* column : {"both", "step", "optimizer"}) EXPECT_TRUE(blank(forward, column)) << column;
  EXPECT_EQ(real(fused, "optimizer"), 0) << "a step whose optimizer has no kernels: measured, and nothing";
  const std::string page = write(table("nsys_profile", "matmul_share"), Format::markdown);
  EXPECT_EQ(page.find("not measured"), std::string::npos) << page;
  EXPECT_NE(page.find("| – |"), std::string::npos) << page;
  EXPECT_NE(page.find("– = not applicable"), std::string::npos) << page;
}

TEST_F(ProfileTables, SoftmaxInsideOneKernelHasNoShareThatChanges) {
  add_profile(kInOne, {.params = step_of(4), .implementation = "fused"});
  const std::string text = said("nsys_profile", "share_changes");
  EXPECT_NE(text.find("softmax is part of the fused attention kernel"), std::string::npos) << text;
  EXPECT_EQ(text.find("softmax from"), std::string::npos) << text;
}

TEST_F(ProfileTables, TheSumOfKernelsBesideTheClockSaysWhatItMeans) {
  const struct {
    double low, busy, high;  // ms of kernels, beside 10 (9.5 to 10.5) by the clock
    const char* source;
    const char* words;
  } kCases[] = {
      {7.9, 8, 8.1, "CUPTI", "kernels fill 80 % of the pass; the rest is launches and gaps"},
      {9, 10, 12, "host clock", "Launches and gaps between kernels are not distinguishable from zero"},
      {12, 12.4, 13, "CUPTI", "Kernels add up to more than the clock: some overlap and count twice"},
      {12, 12.4, 13, "host clock",
       "Kernels add up to more than the clock: the recorded steps were slower than the timed ones"},
  };
  int number = 0;
  for (const auto& one : kCases) {
    add_records("nsys_profile",
                {metric("parameters", 1000), timed("forward", 0.010, 0.0095, 0.0105),
                 timed("forward_busy", one.busy * 1e-3, one.low * 1e-3, one.high * 1e-3),
                 worker::FactRecord{std::string(R"({"trace":{"source":")") + one.source + "\"}}"}},
                {.params = step_of(4), .implementation = "step-" + std::to_string(number++)});
    const std::string text = said("nsys_profile", "forward_time");
    EXPECT_NE(text.find(one.words), std::string::npos) << text;
  }
  const std::string text = said("nsys_profile", "forward_time");
  EXPECT_EQ(text.find("kernels fill 124 %"), std::string::npos) << text;
}

TEST_F(ProfileTables, WhatRecordingCostsIsSaidOnlyBeyondTheNoise) {
  const auto with_cost = [&](const std::string& name, double cost, double low, double high) {
    add_records("nsys_profile",
                {metric("parameters", 1000), timed("recording_overhead", cost, low, high),
                 timed("step_plain", 0.010, 0.009, 0.011), timed("step_recorded", 0.0105, 0.01, 0.011)},
                {.params = step_of(4), .implementation = name});
  };
  with_cost("a", 0.05, 0.02, 0.08);
  with_cost("b", -0.1, -0.61, 0.53);
  with_cost("c", -0.3, -0.4, -0.2);
  const std::string text = said("nsys_profile", "recording");
  EXPECT_NE(text.find("Profiling overhead is 5 % (2 to 8 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("is below 53 %, not distinguishable from zero"), std::string::npos) << text;
  EXPECT_NE(text.find("cannot be given: recorded steps were 30 % faster (20 to 40 %)"), std::string::npos) << text;
}

TEST_F(ProfileTables, SoftmaxBesideProductsHasItsInterval) {
  add_profile(kInParts, {.params = step_of(4), .implementation = "eager"});
  const std::string before = said("nsys_profile", "softmax_ratio");
  EXPECT_NE(before.find("softmax takes 1.50 (no interval) times as long"), std::string::npos) << before;
}

TEST_F(ProfileTables, BackwardOverForwardHasItsIntervalAndSaysWhereNothingCanBeSaid) {
  Params params = step_of(4);
  params.set("warmup", std::int64_t{5});
  const auto step = [&](const std::string& name, double half_width) {
    const auto phase = [&](const std::string& phase_name, double seconds) {
      return timed(phase_name, seconds, seconds * (1 - half_width), seconds * (1 + half_width));
    };
    add_records(
        "benchmarking_script",
        {metric("parameters", 1000), phase("forward", 0.010), phase("backward", 0.019), phase("optimizer", 0.001)},
        {.params = params, .implementation = name});
  };
  step("calm", 0.01);
  step("noisy", 0.4);
  const std::string text = said("benchmarking_script", "phases");
  EXPECT_NE(text.find("`calm`, Example_CPU 9000): forward takes 10.00 ms, backward 19.00 and"), std::string::npos)
      << text;
  EXPECT_NE(text.find("Backward / forward is 1.900 ± 0.038"), std::string::npos) << text;
  EXPECT_NE(text.find("Backward / forward is 1.90 (0.814 … 4.43, no measurable difference)"), std::string::npos)
      << text;
}

TEST_F(ProfileTables, AStepOfSegmentsBesideTheOneThatKeepsAllHasItsInterval) {
  const auto step = [&](const std::string& name, double segment, double seconds, double half_width) {
    Params params = step_of(4);
    params.set("segment", segment);
    add_records("gradient_checkpointing",
                {metric("peak_bytes", (segment > 0 ? 1.0 : 2.0) * 1048576), metric("block_forwards", 4),
                 timed("time", seconds, seconds * (1 - half_width), seconds * (1 + half_width))},
                {.params = params, .implementation = name});
  };
  for (const auto& [name, half_width] : {std::pair{"calm", 0.01}, {"noisy", 0.4}}) {
    step(name, 0.0, 0.1, half_width);
    step(name, 1.0, 0.12, half_width);
  }
  step("alone", 1.0, 0.12, 0.01);
  const std::string text = said("gradient_checkpointing", "best");
  EXPECT_NE(text.find("segments of 1 block have the lowest peak"), std::string::npos) << text;
  EXPECT_NE(text.find("with it a step takes 1.2 (1.18 … 1.22) times as long"), std::string::npos) << text;
  EXPECT_NE(text.find("takes 1.2 (0.514 … 2.8, no measurable difference) times as long"), std::string::npos) << text;
  EXPECT_NE(text.find("lowest peak, 1.000 MiB.\n"), std::string::npos) << "with nothing beside it: " << text;
}

TEST_F(ProfileTables, AGainGrowsWithTheModelOnlyWhereTheIntervalsAreApart) {
  const auto step = [&](const std::string& name, const std::string& model, const std::string& precision, double seconds,
                        double half_width) {
    Params params = step_of(4);
    params.set("model", model);
    params.set("precision", precision);
    const double low = 0.5 * seconds * (1 - half_width), high = 0.5 * seconds * (1 + half_width);
    add_records("benchmarking_mixed_precision",
                {metric("parameters", model == "small" ? 1000 : 2000), timed("forward", 0.5 * seconds, low, high),
                 timed("backward", 0.5 * seconds, low, high)},
                {.params = params, .implementation = name});
  };
  for (const auto& [name, half_width] : {std::pair{"calm", 0.01}, {"noisy", 0.3}}) {
    step(name, "small", "fp32", 0.1, half_width);
    step(name, "small", "bf16_amp", 0.05, half_width);
    step(name, "large", "fp32", 0.3, half_width);
    step(name, "large", "bf16_amp", 0.1, half_width);
  }
  const std::string text = said("benchmarking_mixed_precision", "trend");
  EXPECT_NE(text.find("2.000 ± 0.040 times as fast as"), std::string::npos) << text;
  EXPECT_NE(text.find("The speed-up grows with model size, probably because matrix products"), std::string::npos)
      << text;
  EXPECT_NE(text.find("We see no difference in speed-up between small and large"), std::string::npos) << text;
}

TEST_F(ProfileTables, TheEffectOfAPrecisionIsFoundWithinOneProtocolAndModel) {
  Params deeper = step_of(4);
  deeper.set("layers", std::int64_t{48});
  double mib = 100;
  for (const Params& params : {step_of(4), step_of(8), deeper}) {
    for (const char* protocol : {"cs336", "quick"}) {
      add_memory("fp32", "step", mib, {.params = params, .protocol = protocol});
      add_memory("fp32", "forward", mib / 2, {.params = params, .protocol = protocol});
      mib += 100;
    }
  }
  // 100 and 200: batch 4; 300, 400: batch 8; 500, 600: more layers.
  add_memory("bf16_amp", "step", 150, {.params = step_of(8), .protocol = "quick"});
  add_memory("bf16_amp", "forward", 120, {.params = step_of(8), .protocol = "quick"});
  add_memory("bf16_amp", "step", 250, {.params = deeper, .protocol = "cs336"});
  add_memory("bf16_amp", "forward", 220, {.params = deeper, .protocol = "cs336"});
  query("memory_profiling", "tables/precision_effect.sql");
  ASSERT_EQ(found_.rows.size(), 2U);
  const std::size_t first = at(0, "steps").text.starts_with("150") ? 0 : 1;
  EXPECT_EQ(at(first, "steps").text, "150 MiB for T = 128 (-63 % on fp32)") << "of 400";
  EXPECT_EQ(at(first, "forwards").text, "120 MiB (-40 %)") << "of 200";
  EXPECT_EQ(at(1 - first, "steps").text, "250 MiB for T = 128 (-50 % on fp32)") << "of 500";
  query("memory_profiling", "tables/precision_peaks.sql");
  ASSERT_EQ(found_.rows.size(), 4U) << "a row a pass and pair, none of fp32 alone";
  for (std::size_t row = 0; row < 4; ++row) {
    const std::map<double, double> in_fp32{{150, 400}, {120, 200}, {250, 500}, {220, 250}};
    EXPECT_EQ(real(row, "full"), in_fp32.at(real(row, "half")));
  }
}

// Segments of 1, 2 and 4 of eight blocks, of which one weighs three streams: √(8·1/3) = 1.6 is the best.
TEST_F(ProfileTables, WhyASegmentIsBestFollowsFromAStreamAndABlock) {
  constexpr double kMiB = 1048576;
  const auto held = [](double k) { return (8 / k - 1) + k * 3; };
  for (const double k : {1.0, 2.0, 4.0}) {
    Params params = step_of(4);
    params.set("segment", k);
    fixture_.add({.experiment = "gradient_checkpointing",
                  .params = params,
                  .implementation = "fused",
                  .records = {passed(), metric("peak_bytes", (100 + held(k)) * kMiB), metric("block_forwards", 16 - k),
                              metric("stream_bytes", kMiB), metric("block_bytes", 3 * kMiB), metric("layers", 8)}});
  }
  query("gradient_checkpointing", "tables/best.sql");
  ASSERT_EQ(found_.rows.size(), 1U);
  EXPECT_EQ(at(0, "best").text, "2 blocks");
  EXPECT_EQ(at(0, "beside").text, ", versus 110 MiB for 1 and 113 MiB for 4");
  EXPECT_NEAR(real(0, "optimum"), std::sqrt(8.0 / 3), 1e-12);
  EXPECT_EQ(real(0, "held_best"), 9);
  EXPECT_EQ(at(0, "others").text, ", 10 MiB for 1, 13 MiB for 4");
  EXPECT_TRUE(at(0, "reason").text.starts_with("Shorter segments")) << at(0, "reason").text;
}

TEST_F(ProfileTables, HalfABlockIsInNoArithmeticOfWholeOnes) {
  constexpr double kMiB = 1048576;
  for (const auto& [k, peak] : std::map<double, double>{{0.5, 150}, {1, 137}, {2, 163}}) {
    Params params = step_of(4);
    params.set("segment", k);
    fixture_.add({.experiment = "gradient_checkpointing",
                  .params = params,
                  .implementation = "fused",
                  .records = {passed(), metric("peak_bytes", peak * kMiB), metric("block_forwards", 16 - k),
                              metric("stream_bytes", kMiB), metric("block_bytes", 30 * kMiB), metric("layers", 8)}});
  }
  query("gradient_checkpointing", "tables/best.sql");
  ASSERT_EQ(found_.rows.size(), 1U);
  EXPECT_EQ(at(0, "best").text, "1 block");
  EXPECT_EQ(real(0, "held_best"), 37);
  EXPECT_EQ(at(0, "others").text, ", 63 MiB for 2");
  EXPECT_TRUE(at(0, "reason").text.starts_with("One block's activations")) << at(0, "reason").text;
}

TEST_F(ProfileTables, WhatABlockGivesBackIsWhatTheLogSaysItKept) {
  constexpr std::int64_t kMiB = 1048576;
  FixtureStore::Attempt attempt{.experiment = "memory_profiling", .params = step_of(4), .implementation = "fused"};
  attempt.records = {passed(),
                     metric("parameters", 1000),
                     metric("predicted_block_bytes", 99.0 * kMiB),
                     metric("framework_block_bytes", 60.0 * kMiB),
                     metric("block_gradient_bytes", 40.0 * kMiB),
                     metric("expected_block_gradient_bytes", 40.0 * kMiB)};
  for (const char* layer : {"layers.0.", "layers.1.", "layers.2.", "layers.3."}) {
    const std::int64_t bytes = std::string(layer) == "layers.2." ? 8 * kMiB : kMiB;
    attempt.records.push_back(
        worker::MemoryEventRecord{1, bytes, layer + std::string("attn.qkv"), "saved activations"});
    attempt.records.push_back(
        worker::MemoryEventRecord{2, bytes, layer + std::string("ffn.gated"), "saved activations"});
    attempt.records.push_back(worker::MemoryEventRecord{3, kMiB, layer + std::string("attn.out"), "temporaries"});
    attempt.records.push_back(
        worker::MemoryEventRecord{4, -bytes, layer + std::string("attn.qkv"), "saved activations"});
  }
  fixture_.add(std::move(attempt));
  query("memory_profiling", "tables/block_gradients.sql");
  ASSERT_EQ(found_.rows.size(), 1U);
  EXPECT_EQ(real(0, "saved"), 16) << "of the middle block";
  EXPECT_EQ(texts("framework"),
            std::vector<std::string>{". Allocated in backward, as PyTorch does, they would leave a growth of 24 MiB"});
}

TEST_F(ProfileTables, CountsOfASchemeStandOnceWhateverMachinesCounted) {
  for (const char* machine : {"box", "another box"}) {
    for (const char* protocol : {"quick", "kernel"}) {
      for (const char* scheme : {"none", "left_deep"}) {
        fixture_.add({.experiment = "checkpoint_schemes",
                      .params = {{"blocks", std::int64_t{8}}, {"scheme", std::string(scheme)}},
                      .implementation = "counted",
                      .records = {passed(), metric("block_forwards", 36), metric("streams", 1), metric("residuals", 1)},
                      .protocol = protocol,
                      .machine = machine});
      }
    }
  }
  query("checkpoint_schemes", "tables/checkpoint_schemes.sql");
  EXPECT_EQ(texts("scheme"), (std::vector<std::string>{"left_deep", "none"}));
  query("gradient_checkpointing", "tables/schemes.sql");
  EXPECT_EQ(texts("scheme"), (std::vector<std::string>{"left_deep", "none"}));
}

}  // namespace
}  // namespace syslab::report
