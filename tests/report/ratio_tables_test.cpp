// Ratios of times in tables and sentences have the interval that the times' intervals leave, both at their worst; a row
// beside itself has none.
#include "tests/report/ratio_fixture.hpp"

namespace syslab::report {
namespace {

const std::string kRing = "alternate_ring_all_reduce";

TEST_F(RatioTables, OneRingBesideTheOther) {
  const Time whole{3e-3, 2.5e-3, 4e-3}, parts{2e-3};
  add(kRing, {{"bytes", std::int64_t{1000}}}, "whole", {time_record("time", whole, worker::kAllRanks)}, 4);
  add(kRing, {{"bytes", std::int64_t{1000}}}, "parts", {time_record("time", parts, worker::kAllRanks)}, 4);
  fill_from(kRing, kRing);
  ASSERT_EQ(table_.result.rows.size(), 2U);
  expect_itself(0, "vs_parts");
  expect_ratio(1, "vs_parts", whole, parts);
  fill_from(kRing, "ratio");
  ASSERT_EQ(table_.result.rows.size(), 1U);
  EXPECT_EQ(at(0, "expected").real, 2);  // of four ranks
  EXPECT_EQ(at(0, "ratio").text, "1.14 to 2.22×");
  EXPECT_EQ(at(0, "verdict").text, ", an interval too wide to confirm it");
}

TEST_F(RatioTables, ARatioOfRingsWithoutIntervalsHasNone) {
  const auto once = [](double seconds) {
    return worker::MetricRecord{.name = "time", .unit = "s", .value = seconds, .n = 1, .rank = worker::kAllRanks};
  };
  add(kRing, {{"bytes", std::int64_t{1000}}}, "whole", {once(4e-3)}, 4);
  add(kRing, {{"bytes", std::int64_t{1000}}}, "parts", {once(2e-3)}, 4);
  fill_from(kRing, "ratio");
  EXPECT_EQ(at(0, "ratio").text, "2×");
  EXPECT_EQ(at(0, "verdict").text, "");
}

TEST_F(RatioTables, ANarrowRatioOfRingsIsAsPredicted) {
  add(kRing, {{"bytes", std::int64_t{1000}}}, "whole", {time_record("time", {4e-3, 3.9e-3, 4.1e-3}, worker::kAllRanks)},
      4);
  add(kRing, {{"bytes", std::int64_t{1000}}}, "parts",
      {time_record("time", {2e-3, 1.95e-3, 2.05e-3}, worker::kAllRanks)}, 4);
  fill_from(kRing, "ratio");
  EXPECT_EQ(at(0, "verdict").text, ", as predicted");
  // A quarter from end to end holds the prediction and many others.
  add(kRing, {{"bytes", std::int64_t{2000}}}, "whole", {time_record("time", {4e-3, 3.8e-3, 4.6e-3}, worker::kAllRanks)},
      4);
  add(kRing, {{"bytes", std::int64_t{2000}}}, "parts",
      {time_record("time", {2e-3, 1.95e-3, 2.05e-3}, worker::kAllRanks)}, 4);
  fill_from(kRing, "ratio");
  EXPECT_EQ(at(0, "ratio").text, "1.85 to 2.36×");
  EXPECT_EQ(at(0, "verdict").text, ", an interval too wide to confirm it");
}

class Crossing : public RatioTables {
 protected:
  // A layer of 256 × 512 numbers on two ranks.
  void add_layer(const std::string& layout, std::int64_t tokens, std::int64_t d_ff, const Time& communicate,
                 const std::string& implementation = "shm") {
    const std::int64_t width = 256;
    const auto product = static_cast<double>(tokens * width * d_ff);
    const double sent = static_cast<double>(layout == "fsdp" ? 3 * width * d_ff : 2 * tokens * width) / 2;
    const double bytes = implementation == "shm" ? 4 : 2;
    add("layer_crossover", {{"layout", layout}, {"tokens", tokens}, {"d_ff", d_ff}, {"d_model", width}}, implementation,
        {time_record("time", {2}, worker::kAllRanks), time_record("compute", {1, 1, 1}, worker::kAllRanks),
         time_record("communicate", communicate, worker::kAllRanks),
         worker::MetricRecord{.name = "flops", .unit = "1", .value = 3 * product},
         worker::MetricRecord{.name = "sent_bytes", .unit = "B", .value = sent * bytes},
         worker::MetricRecord{.name = "element_bytes", .unit = "B", .value = bytes}},
        2);
  }
};

TEST_F(Crossing, LiesWhereTheEndsOfBothRatiosWouldHaveIt) {
  // From four times at 8 tokens to a quarter at 512: equal in the middle of the logarithms, at 64.
  const Time below{4, 2, 8}, above{0.25, 0.125, 0.5};
  add_layer("fsdp", 8, 512, below);
  add_layer("fsdp", 512, 512, above);
  fill_from("layer_crossover", "layer_crossover");
  ASSERT_EQ(table_.result.rows.size(), 2U);
  expect_ratio(0, "ratio", below, {1, 1, 1});
  fill_from("layer_crossover", "crossing");
  ASSERT_EQ(table_.result.rows.size(), 1U);
  EXPECT_NEAR(at(0, "crossing").real, 64, 1e-9);
  EXPECT_NEAR(at(0, "crossing_low").real, 8 * std::pow(64, 0.25), 1e-9);
  EXPECT_NEAR(at(0, "crossing_high").real, 8 * std::pow(64, 0.75), 1e-9);
  EXPECT_EQ(text(0, "verdict"), "the interval covers the timing noise, not the interpolation");
}

TEST_F(Crossing, LiesByTheFormulaWhereItsElementsHaveIt) {
  for (const std::string implementation : {"shm", "nccl"}) {
    add_layer("fsdp", 8, 512, {4, 2, 8}, implementation);
    add_layer("fsdp", 512, 512, {0.25, 0.125, 0.5}, implementation);
    add_layer("tensor", 512, 8, {4, 2, 8}, implementation);
    add_layer("tensor", 512, 256, {0.25, 0.125, 0.5}, implementation);
  }
  fill_from("layer_crossover", "crossing");
  ASSERT_EQ(table_.result.rows.size(), 4U);
  for (std::size_t row = 0; row < 4; ++row) {
    const double bytes = text(row, "elements") == "bf16" ? 2 : 4;
    const double ratio = 1e3 * at(row, "c").real / at(row, "w").real;  // C/W; e(N − 1)C/2W tokens, /3W hidden numbers
    const double wanted = bytes * ratio / (text(row, "layout") == "Full sharding" ? 2 : 3);
    EXPECT_NEAR(at(row, "limit").real, wanted, 1e-9 * wanted) << row;
  }
}

TEST_F(Crossing, AFailedCaseKeepsItsRowAndIsInNoFit) {
  add_layer("fsdp", 8, 512, {4, 2, 8});
  add_layer("fsdp", 512, 512, {0.25, 0.125, 0.5});
  fill_from("layer_crossover", "layer_crossover");
  const double c = at(0, "c").real, w = at(0, "w").real;
  EXPECT_NEAR(at(0, "formula").real, 64 * at(1, "formula").real, 1e-12);
  fixture_.add(
      {.experiment = "layer_crossover",
       .params = {{"layout", std::string("fsdp")},
                  {"tokens", std::int64_t{64}},
                  {"d_ff", std::int64_t{1024}},
                  {"d_model", std::int64_t{256}}},
       .implementation = "shm",
       .records = {time_record("compute", {9}, worker::kAllRanks), time_record("communicate", {9}, worker::kAllRanks)},
       .ranks = 2,
       .status = Status::timeout,
       .detail = "after 5 s"});
  fill_from("layer_crossover", "layer_crossover");
  ASSERT_EQ(table_.result.rows.size(), 3U);
  EXPECT_EQ(text(2, "status"), "timeout");
  EXPECT_EQ(at(2, "compute").type, Cell::Type::null);
  EXPECT_EQ(at(2, "ratio").type, Cell::Type::null);
  EXPECT_DOUBLE_EQ(at(0, "c").real, c);
  EXPECT_DOUBLE_EQ(at(0, "w").real, w);
  fill_from("layer_crossover", "crossing");
  EXPECT_EQ(table_.result.rows.size(), 1U) << "its d_ff is the largest, and has no ratio";
}

TEST_F(Crossing, HasNoIntervalWhereARatioMayBeOne) {
  add_layer("tensor", 512, 8, {4, 0.5, 8});
  add_layer("tensor", 512, 512, {0.25, 0.125, 0.5});
  fill_from("layer_crossover", "crossing");
  ASSERT_EQ(table_.result.rows.size(), 1U);
  EXPECT_NEAR(at(0, "crossing").real, 64, 1e-9);
  EXPECT_EQ(at(0, "crossing_low").type, Cell::Type::null);
  EXPECT_EQ(text(0, "verdict"), "noise does not exclude a crossing outside these two sizes");
}

Params attention(const std::string& pass) {
  return {{"batch", std::int64_t{1}},         {"heads", std::int64_t{1}},
          {"heads_kv", std::int64_t{0}},      {"seq", std::int64_t{128}},
          {"seq_k", std::int64_t{0}},         {"head_dim", std::int64_t{16}},
          {"dtype", std::string("fp32")},     {"causal", false},
          {"align", std::string("top_left")}, {"pass", pass}};
}

TEST_F(RatioTables, AttentionBesideTheLiteralForm) {
  const Time literal_forward{4e-3}, literal_backward{6e-3}, forward{1e-3, 0.5e-3, 2e-3}, backward{3e-3};
  const auto add_pass = [&](const std::string& implementation, const std::string& pass, const Time& time) {
    add("pytorch_attention", attention(pass), implementation,
        {time_record("time", time), worker::MetricRecord{.name = "kept_bytes", .unit = "B", .value = 1024.0}}, 1,
        implementation == "literal" ? "literal" : "intermediate");
  };
  add_pass("literal", "forward", literal_forward);
  add_pass("literal", "backward", literal_backward);
  add_pass("fused_softmax", "forward", forward);
  add_pass("fused_softmax", "backward", backward);
  const Time literal{10e-3, 9e-3, 11e-3}, fused{4e-3, 3.2e-3, 5.3e-3};
  fill_from("pytorch_attention", "kept");
  ASSERT_EQ(table_.result.rows.size(), 1U);
  EXPECT_NEAR(at(0, "ratio").real, 0.4, 1e-12);
  EXPECT_NEAR(at(0, "ratio_low").real, fused.low / literal.high, 1e-12);
  EXPECT_NEAR(at(0, "ratio_high").real, fused.high / literal.low, 1e-12);
  fill_from("pytorch_attention", "pytorch_attention");
  ASSERT_EQ(table_.result.rows.size(), 2U);
  expect_itself(0, "vs_literal");
  EXPECT_NEAR(at(1, "vs_literal").real, 2.5, 1e-12);
  EXPECT_NEAR(at(1, "vs_literal_low").real, literal.low / fused.high, 1e-12);
  EXPECT_NEAR(at(1, "vs_literal_high").real, literal.high / fused.low, 1e-12);
  fill_from("pytorch_attention", "fused");
  ASSERT_EQ(table_.result.rows.size(), 2U);
  expect_ratio(0, "ratio", literal_forward, forward);
}

// A rung that no table has heard of, beside one that has no name of theirs either.
TEST_F(RatioTables, ANewRungStandsWhereItsRoleDoes) {
  Params params = attention("forward");
  const auto add_rung = [&](const std::string& experiment, const std::string& name, const std::string& role,
                            const Time& time) { add(experiment, params, name, {time_record("time", time)}, 1, role); };
  const Time plain{8e-3}, quick{2e-3};
  for (const bool causal : {false, true}) {
    params.set("causal", causal);
    add_rung("flash_forward", "anew", "", quick);
    add_rung("flash_forward", "plain", "naive", plain);
    add_rung("flash_forward", "exact", "gpu_reference", {1e-3});
  }
  fill_from("flash_forward", "causal");
  ASSERT_EQ(table_.result.rows.size(), 1U) << "neither the naive one nor an oracle";
  EXPECT_EQ(text(0, "implementation"), "anew");
  fill_from("flash_forward", "speedup");
  ASSERT_EQ(table_.result.rows.size(), 1U) << "an oracle is never the fastest of ours";
  EXPECT_EQ(text(0, "implementation"), "anew");
  EXPECT_DOUBLE_EQ(at(0, "speedup").real, 4);

  params.set("causal", false);
  add_rung("pytorch_attention", "by_hand", "literal", plain);
  add_rung("pytorch_attention", "half_way", "intermediate", {1e-3});
  add_rung("pytorch_attention", "anew", "", quick);
  fill_from("torch_compile", "attention");
  ASSERT_EQ(table_.result.rows.size(), 1U);
  EXPECT_EQ(text(0, "flash_name"), "anew");
  EXPECT_DOUBLE_EQ(at(0, "flash_gain").real, 4);

  params.set("pass", std::string("both"));
  for (const std::int64_t seq : {64, 128}) {
    params.set("seq", seq);
    add_rung("flash_benchmarking", "by_hand", "literal", plain);
    add_rung("flash_benchmarking", "half_way", "intermediate", {1e-3});
    add_rung("flash_benchmarking", "anew", "", quick);
  }
  fill_from("flash_benchmarking", "speedup");
  ASSERT_EQ(table_.result.rows.size(), 1U);
  EXPECT_EQ(text(0, "implementation"), "anew");
  EXPECT_DOUBLE_EQ(at(0, "at_high").real, 4);
  fill_from("flash_benchmarking", "flash_benchmarking");
  ASSERT_EQ(table_.result.rows.size(), 6U);
  EXPECT_EQ(text(0, "implementation"), "by_hand") << "in the order of roles, not of names";
  EXPECT_EQ(text(1, "implementation"), "half_way");
  EXPECT_DOUBLE_EQ(at(2, "vs_literal").real, 4);
}

TEST_F(RatioTables, APrecisionBesideFp32) {
  const Time slow{4e-3}, fast{1e-3, 0.5e-3, 2e-3};
  for (const std::string precision : {"fp32", "tf32", "bf16_amp"}) {
    const Time& time = precision == "bf16_amp" ? fast : slow;
    add("benchmarking_mixed_precision",
        {{"model", std::string("tiny")},
         {"batch", std::int64_t{1}},
         {"context", std::int64_t{8}},
         {"precision", precision}},
        "fused", {time_record("time", time), time_record("forward", time), time_record("backward", time)});
  }
  fill_from("benchmarking_mixed_precision", "benchmarking_mixed_precision");
  ASSERT_EQ(table_.result.rows.size(), 3U);
  EXPECT_EQ(at(0, "forward_speedup").real, 1);
  EXPECT_EQ(at(0, "forward_least").type, Cell::Type::null);
  EXPECT_NEAR(at(1, "forward_least").real, 0.9 / 1.1, 1e-12) << "tf32 beside fp32";
  EXPECT_EQ(at(1, "over_least").type, Cell::Type::null) << "and beside itself";
  EXPECT_NEAR(at(2, "backward_speedup").real, 4, 1e-12);
  EXPECT_NEAR(at(2, "backward_least").real, slow.low / fast.high, 1e-12);
  EXPECT_NEAR(at(2, "backward_most").real, slow.high / fast.low, 1e-12);
  EXPECT_NEAR(at(2, "over_least").real, slow.low / fast.high, 1e-12);
  EXPECT_NEAR(at(2, "over_most").real, slow.high / fast.low, 1e-12);
}

TEST_F(RatioTables, WhatIsLeftOfARanksSpeed) {
  const auto add_step = [&](const std::string& strategy, int ranks, const Time& time) {
    add("ddp_bucketed_benchmarking",
        {{"model", std::string("tiny")},
         {"batch", std::int64_t{2} * ranks},
         {"context", std::int64_t{8}},
         {"precision", std::string("fp32")},
         {"strategy", strategy},
         {"bucket_mb", std::int64_t{0}}},
        "host", {time_record("time", time, worker::kAllRanks)}, ranks);
  };
  const Time alone{1e-3}, of_two{2e-3, 1.5e-3, 3e-3};
  add_step("none", 2, alone);
  add_step("overlap", 2, of_two);
  fill_from("ddp_bucketed_benchmarking", "scaling");
  ASSERT_EQ(table_.result.rows.size(), 2U);
  for (std::size_t row = 0; row < 2; ++row) EXPECT_EQ(at(row, "kept").type, Cell::Type::null) << "of one width alone";
  add_step("none", 1, alone);
  for (const std::string strategy : {"overlap", "naive"}) add_step(strategy, 3, {9e-3});  // has no column
  fill_from("ddp_bucketed_benchmarking", "scaling");
  ASSERT_EQ(table_.result.rows.size(), 2U);
  EXPECT_EQ(at(0, "kept").real, 100);
  EXPECT_NEAR(at(1, "kept").real, 50, 1e-9);
  EXPECT_NEAR(at(1, "kept_low").real, 100 * alone.low / of_two.high, 1e-9);
  EXPECT_NEAR(at(1, "kept_high").real, 100 * alone.high / of_two.low, 1e-9);
  const store::ResultSet more = fixture_.store().query(
      "SELECT over_none, over_none_low, over_none_high FROM v_data_parallel WHERE ranks = 2 ORDER BY strategy = "
      "'overlap'");
  EXPECT_EQ(more.rows.at(0).at(1).type, Cell::Type::null) << "beside itself";
  EXPECT_NEAR(more.rows.at(1).at(0).real, 1e3 * (of_two.value - alone.value), 1e-9);
  EXPECT_NEAR(more.rows.at(1).at(1).real, 1e3 * (of_two.low - alone.high), 1e-9);
  EXPECT_NEAR(more.rows.at(1).at(2).real, 1e3 * (of_two.high - alone.low), 1e-9);
}

TEST_F(RatioTables, OneMessageIsShorterOnlyWhereTheIntervalsAreApart) {
  const std::string name = "minimal_ddp_flat_benchmarking";
  const auto add_step = [&](const std::string& strategy, std::int64_t batch, const std::vector<Record>& records) {
    add(name,
        {{"model", std::string("tiny")},
         {"batch", batch},
         {"context", std::int64_t{8}},
         {"precision", std::string("fp32")},
         {"strategy", strategy}},
        "host", records, 2);
  };
  const auto add_steps = [&](std::int64_t batch, const Time& naive, const Time& copy, const Time& view) {
    add_step("naive", batch, {time_record("time", naive, worker::kAllRanks)});
    add_step("flat_copy", batch, {time_record("time", copy, worker::kAllRanks)});
    add_step("flat_view", batch, {time_record("time", view, worker::kAllRanks)});
  };
  add_steps(2, {1.2e-3, 1.1e-3, 1.3e-3}, {0.95e-3, 0.9e-3, 1.0e-3}, {1.5e-3, 1.4e-3, 1.6e-3});
  add_steps(4, {1.2e-3, 1.1e-3, 1.3e-3}, {1.0e-3, 0.9e-3, 1.15e-3}, {0.9e-3, 0.8e-3, 1.0e-3});
  add_step("naive", 6, {time_record("time", {1e-3}, worker::kAllRanks)});
  for (const std::string strategy : {"flat_copy", "flat_view"}) {
    add_step(strategy, 6, {worker::MetricRecord{.name = "time", .unit = "s", .value = 9e-3, .n = 1}});
  }
  fill_from(name, "messages");
  ASSERT_EQ(table_.result.rows.size(), 3U);
  EXPECT_EQ(text(0, "verdict"), "faster");
  EXPECT_EQ(text(0, "views_verdict"), "slower");
  EXPECT_EQ(text(1, "verdict"), "no measurable difference");
  EXPECT_EQ(text(1, "views_verdict"), "faster");
  EXPECT_EQ(text(2, "verdict"), "too few samples for an interval");
  EXPECT_EQ(text(2, "views_verdict"), "too few samples for an interval");
}

}  // namespace
}  // namespace syslab::report
