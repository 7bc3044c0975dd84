// Ratios of times in tables and sentences have the interval that the times' intervals leave, both at their worst; a row
// beside itself has none.
#include <gtest/gtest.h>

#include <cmath>

#include "core/resources.hpp"
#include "report/cells.hpp"
#include "report/table.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {
namespace {

using store::Cell;
using worker::Record;

// With an interval of a tenth on both sides, if nothing else is said.
struct Time {
  double value, low = 0.9 * value, high = 1.1 * value;
};

Record timed(const std::string& name, const Time& time, int rank = 0) {
  return worker::MetricRecord{
      .name = name, .unit = "s", .value = time.value, .low = time.low, .high = time.high, .n = 10, .rank = rank};
}

worker::CheckRecord right_result() { return {.name = "reference:y", .outcome = "passed", .cases_run = 1, .seed = "7"}; }

class RatioTables : public ::testing::Test {
 protected:
  void add(const std::string& experiment, const Params& params, const std::string& implementation,
           std::vector<Record> records, int ranks = 1) {
    records.insert(records.begin(), right_result());
    fixture_.add({.experiment = experiment,
                  .params = params,
                  .implementation = implementation,
                  .records = std::move(records),
                  .ranks = ranks});
  }
  void fill_from(const std::string& experiment, const std::string& id) {
    const std::string name = "experiments/" + experiment + "/tables/" + id + ".sql";
    const std::vector<Resource> files = resources(name);
    ASSERT_EQ(files.size(), 1U) << name;
    table_ = fill(parse_table(id, std::string(files.at(0).text)), fixture_.store());
  }
  const Cell& at(std::size_t row, std::string_view column) const { return cell_of(table_.result, row, column); }
  void expect_ratio(std::size_t row, const std::string& column, const Time& above, const Time& below) const {
    EXPECT_DOUBLE_EQ(at(row, column).real, above.value / below.value) << column;
    EXPECT_DOUBLE_EQ(at(row, column + "_low").real, above.low / below.high) << column;
    EXPECT_DOUBLE_EQ(at(row, column + "_high").real, above.high / below.low) << column;
  }
  void expect_itself(std::size_t row, const std::string& column) const {
    EXPECT_EQ(at(row, column).real, 1) << column;
    EXPECT_EQ(at(row, column + "_low").type, Cell::Type::null) << column;
    EXPECT_EQ(at(row, column + "_high").type, Cell::Type::null) << column;
  }
  std::string text(std::size_t row, std::string_view column) const { return at(row, column).text; }

  FixtureStore fixture_;
  Table table_;
};

const std::string kRing = "alternate_ring_all_reduce";

TEST_F(RatioTables, OneRingBesideTheOther) {
  const Time whole{3e-3, 2.5e-3, 4e-3}, parts{2e-3};
  add(kRing, {{"bytes", std::int64_t{1000}}}, "whole", {timed("time", whole, worker::kAllRanks)}, 4);
  add(kRing, {{"bytes", std::int64_t{1000}}}, "parts", {timed("time", parts, worker::kAllRanks)}, 4);
  fill_from(kRing, kRing);
  ASSERT_EQ(table_.result.rows.size(), 2U);
  expect_itself(0, "vs_parts");
  expect_ratio(1, "vs_parts", whole, parts);
  fill_from(kRing, "ratio");
  ASSERT_EQ(table_.result.rows.size(), 1U);
  expect_ratio(0, "ratio", whole, parts);
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
        {timed("time", {2}, worker::kAllRanks), timed("compute", {1, 1, 1}, worker::kAllRanks),
         timed("communicate", communicate, worker::kAllRanks),
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
  EXPECT_EQ(text(0, "verdict"), "the interval is what the times leave, not what lies between the sizes");
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
  fixture_.add({.experiment = "layer_crossover",
                .params = {{"layout", std::string("fsdp")},
                           {"tokens", std::int64_t{64}},
                           {"d_ff", std::int64_t{1024}},
                           {"d_model", std::int64_t{256}}},
                .implementation = "shm",
                .records = {timed("compute", {9}, worker::kAllRanks), timed("communicate", {9}, worker::kAllRanks)},
                .ranks = 2,
                .status = worker::Status::timeout,
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
  EXPECT_EQ(text(0, "verdict"), "at this noise nothing can be said of whether it lies between them");
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
        {timed("time", time), worker::MetricRecord{.name = "kept_bytes", .unit = "B", .value = 1024.0}});
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

TEST_F(RatioTables, APrecisionBesideFp32) {
  const Time slow{4e-3}, fast{1e-3, 0.5e-3, 2e-3};
  for (const std::string precision : {"fp32", "tf32", "bf16_amp"}) {
    const Time& time = precision == "bf16_amp" ? fast : slow;
    add("benchmarking_mixed_precision",
        {{"model", std::string("tiny")},
         {"batch", std::int64_t{1}},
         {"context", std::int64_t{8}},
         {"precision", precision}},
        "fused", {timed("time", time), timed("forward", time), timed("backward", time)});
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
        "host", {timed("time", time, worker::kAllRanks)}, ranks);
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
    add_step("naive", batch, {timed("time", naive, worker::kAllRanks)});
    add_step("flat_copy", batch, {timed("time", copy, worker::kAllRanks)});
    add_step("flat_view", batch, {timed("time", view, worker::kAllRanks)});
  };
  add_steps(2, {1.2e-3, 1.1e-3, 1.3e-3}, {0.95e-3, 0.9e-3, 1.0e-3}, {1.5e-3, 1.4e-3, 1.6e-3});
  add_steps(4, {1.2e-3, 1.1e-3, 1.3e-3}, {1.0e-3, 0.9e-3, 1.15e-3}, {0.9e-3, 0.8e-3, 1.0e-3});
  add_step("naive", 6, {timed("time", {1e-3}, worker::kAllRanks)});
  for (const std::string strategy : {"flat_copy", "flat_view"}) {
    add_step(strategy, 6, {worker::MetricRecord{.name = "time", .unit = "s", .value = 9e-3, .n = 1}});
  }
  fill_from(name, "messages");
  ASSERT_EQ(table_.result.rows.size(), 3U);
  EXPECT_EQ(text(0, "verdict"), "shorter");
  EXPECT_EQ(text(0, "views_verdict"), "longer");
  EXPECT_EQ(text(1, "verdict"), "the intervals overlap: at this noise nothing can be said");
  EXPECT_EQ(text(1, "views_verdict"), "shorter");
  EXPECT_EQ(text(2, "verdict"), "without intervals nothing can be said");
  EXPECT_EQ(text(2, "views_verdict"), "without intervals nothing can be said");
}

TEST_F(RatioTables, StepsOfModelsOfOneNameAreToldApartByTheirSizes) {
  const auto add_step = [&](std::int64_t vocab) {
    add("naive_ddp_benchmarking",
        {{"model", std::string("tiny")},
         {"vocab", vocab},
         {"layers", std::int64_t{2}},
         {"batch", std::int64_t{2}},
         {"context", std::int64_t{8}},
         {"precision", std::string("fp32")},
         {"strategy", std::string("none")}},
        "host", {timed("time", {1e-3}, worker::kAllRanks)}, 2);
  };
  add_step(64);
  fill_from("naive_ddp_benchmarking", "steps");
  const std::string of_one = write(table_, Format::markdown);
  EXPECT_EQ(of_one.find("vocab |"), std::string::npos) << of_one;
  EXPECT_NE(of_one.find(", vocab 64, "), std::string::npos) << of_one;
  add_step(128);
  fill_from("naive_ddp_benchmarking", "steps");
  const std::string text = write(table_, Format::markdown);
  EXPECT_NE(text.find("| model | vocab | ranks |"), std::string::npos) << text;
  EXPECT_NE(text.find("| tiny | 128 | 2 |"), std::string::npos) << text;
}

// What carries tensors between ranks is an axis, which attempts of earlier days do not have.
TEST_F(RatioTables, StepsOfAnotherBackendStandApart) {
  const auto add_step = [&](const std::string& strategy, const std::string& backend, double seconds, int ranks = 2) {
    Params params{{"model", std::string("tiny")}, {"batch", std::int64_t{2} * ranks},
                  {"context", std::int64_t{8}},   {"precision", std::string("fp32")},
                  {"strategy", strategy},         {"bucket_mb", std::int64_t{0}}};
    if (!backend.empty()) params.set("backend", backend);
    fixture_.add({.experiment = "ddp_bucketed_benchmarking",
                  .params = params,
                  .implementation = "fused",
                  .records = {right_result(), timed("time", {seconds}, worker::kAllRanks)},
                  .gpu = "Example_GPU",
                  .ranks = ranks});
  };
  add_step("none", "", 1e-3);
  add_step("overlap", "auto", 2e-3);
  add_step("none", "copy_engines", 1.1e-3);
  add_step("overlap", "copy_engines", 1.5e-3);
  const store::ResultSet steps = fixture_.store().query(
      "SELECT backend, over_none FROM v_data_parallel WHERE strategy = 'overlap' ORDER BY backend");
  ASSERT_EQ(steps.rows.size(), 2U);
  EXPECT_EQ(steps.rows[0][0].text, "copy_engines");
  EXPECT_NEAR(steps.rows[0][1].real, 0.4, 1e-9);
  EXPECT_EQ(steps.rows[1][0].text, "nccl");
  EXPECT_NEAR(steps.rows[1][1].real, 1.0, 1e-9) << "beside a step from before there was the axis";
  fill_from("ddp_bucketed_benchmarking", "steps");
  EXPECT_EQ(table_.result.rows.size(), 4U);
  for (std::size_t row = 0; row < 4; ++row) {
    const bool silent = text(row, "strategy") == "none";
    EXPECT_EQ(at(row, "exposed").type, silent ? Cell::Type::integer : Cell::Type::null) << "0, or nobody told";
    EXPECT_EQ(text(row, "overlapped"), silent ? "–" : "");
  }
  add_step("none", "", 1e-3, 1);
  add_step("none", "copy_engines", 1.1e-3, 1);
  fill_from("ddp_bucketed_benchmarking", "scaling");
  ASSERT_EQ(table_.result.rows.size(), 4U);
  EXPECT_EQ(text(1, "backend"), "copy_engines");
  EXPECT_NEAR(at(1, "kept").real, 100 * 1.1 / 1.5, 1e-9);
  EXPECT_NEAR(at(3, "kept").real, 50, 1e-9);
}

class Wires : public RatioTables {
 protected:
  // Empty words: from before there were these axes.
  void add_step(const std::string& strategy, const std::string& wire, const std::string& backend, double seconds,
                int ranks = 2, const std::string& experiment = "ddp_bucketed_benchmarking") {
    Params params{{"model", std::string("tiny")}, {"batch", std::int64_t{2} * ranks},
                  {"context", std::int64_t{8}},   {"precision", std::string("fp32")},
                  {"strategy", strategy},         {"bucket_mb", std::int64_t{0}}};
    if (!wire.empty()) params.set("wire", wire);
    if (!backend.empty()) params.set("backend", backend);
    const auto metric = [](const char* name, double value) {
      return worker::MetricRecord{.name = name, .unit = "1", .value = value, .rank = 0};
    };
    fixture_.add({.experiment = experiment,
                  .params = params,
                  .implementation = "fused",
                  .records = {right_result(), timed("time", {seconds}, worker::kAllRanks),
                              timed("exposed", {seconds / 2}, worker::kAllRanks), metric("forward", 1e-3),
                              metric("backward", 1e-3), metric("update", 1e-3), metric("overlapped", 0.5),
                              metric("buckets", 3), metric("gradient_bytes", wire == "bf16" ? 200 : 400)},
                  .gpu = "Example_GPU",
                  .ranks = ranks});
  }
};

TEST_F(Wires, StandApartBesideOneStepWithoutCommunication) {
  add_step("none", "", "", 1e-3);
  add_step("overlap", "", "", 2e-3);
  add_step("overlap", "bf16", "auto", 1.5e-3);
  add_step("overlap", "bf16", "copy_engines", 1.25e-3);
  const auto steps = [&] {
    return fixture_.store()
        .query(
            "SELECT wire, backend, sent, over_none, over_none_low IS NULL FROM v_data_parallel WHERE strategy = "
            "'overlap'"
            " ORDER BY wire, backend")
        .rows;
  };
  auto rows = steps();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0][0].text + " " + rows[0][1].text, "bf16 copy_engines");
  EXPECT_EQ(rows[1][2].text, "in bf16");
  EXPECT_EQ(rows[2][0].text + " " + rows[2][2].text, "own as they lie");
  EXPECT_NEAR(rows[0][3].real, 0.25, 1e-9) << "of any wire and backend";
  EXPECT_NEAR(rows[1][3].real, 0.5, 1e-9);
  EXPECT_NEAR(rows[2][3].real, 1.0, 1e-9);
  for (const auto& row : rows) EXPECT_EQ(row[4].integer, 0);
  // One with a row's own words is that row's, and no other's.
  add_step("none", "bf16", "copy_engines", 0.75e-3);
  add_step("none", "own", "nccl", 0.5e-3);
  rows = steps();
  EXPECT_NEAR(rows[0][3].real, 0.5, 1e-9);
  EXPECT_NEAR(rows[1][3].real, 1.0, 1e-9) << "the newest";
  EXPECT_NEAR(rows[2][3].real, 1.5, 1e-9) << "auto is nccl on GPUs";
  fill_from("ddp_bucketed_benchmarking", "scaling");
  ASSERT_EQ(table_.result.rows.size(), 5U);
  // On fewer ranks is what ranks began with, whatever its words.
  add_step("none", "own", "auto", 0.25e-3, 1);
  fill_from("ddp_bucketed_benchmarking", "scaling");
  ASSERT_EQ(table_.result.rows.size(), 5U);
  for (std::size_t row = 0; row < 5; ++row)
    EXPECT_NEAR(at(row, "kept").real, 100 * 0.25 / at(row, "r2").real, 1e-9) << row;
  // Of several there the one with the row's own backend.
  add_step("none", "bf16", "copy_engines", 0.2e-3, 1);
  fill_from("ddp_bucketed_benchmarking", "scaling");
  for (std::size_t row = 0; row < 5; ++row) {
    const double alone = text(row, "backend") == "copy_engines" ? 0.2 : 0.25;
    EXPECT_NEAR(at(row, "kept").real, 100 * alone / at(row, "r2").real, 1e-9) << row;
  }
}

TEST_F(Wires, OfTwoWordsForOneBackendTheNewestHasTheRow) {
  add_step("none", "", "", 1e-3);
  add_step("overlap", "own", "auto", 2e-3);
  add_step("overlap", "own", "nccl", 3e-3);
  fill_from("ddp_bucketed_benchmarking", "steps");
  ASSERT_EQ(table_.result.rows.size(), 2U);
  EXPECT_NEAR(at(1, "time_ms").real, 3, 1e-9);
  add_step("overlap", "", "", 4e-3);
  fill_from("ddp_bucketed_benchmarking", "steps");
  ASSERT_EQ(table_.result.rows.size(), 2U);
  EXPECT_NEAR(at(1, "time_ms").real, 4, 1e-9);
}

TEST_F(Wires, EachHasASentence) {
  const std::string flat = "minimal_ddp_flat_benchmarking", overlap = "ddp_overlap_individual_parameters_benchmarking";
  for (const std::string wire : {"bf16", "own"}) {
    const double factor = wire == "own" ? 2 : 1;
    for (const std::string backend : {"auto", "nccl"}) {
      for (const std::string strategy : {"none", "naive", "flat_copy", "flat_view", "overlap"}) {
        add_step(strategy, wire, backend, 1e-3 * factor, 2, flat);
        add_step(strategy, wire, backend, 1e-3 * factor, 2, overlap);
        add_step(strategy, wire, backend, 1e-3 * factor, 2, "naive_ddp_benchmarking");
      }
    }
  }
  const std::pair<std::string, std::string> tables[] = {
      {"naive_ddp_benchmarking", "share"}, {flat, "messages"}, {overlap, "hidden"}};
  for (const auto& [experiment, id] : tables) {
    SCOPED_TRACE(experiment);
    fill_from(experiment, id);
    ASSERT_EQ(table_.result.rows.size(), 2U);
    EXPECT_EQ(text(0, "sent"), "as they lie");
    EXPECT_NEAR(at(0, "time_ms").real, 2, 1e-9);
    EXPECT_EQ(text(1, "sent"), "in bf16");
    EXPECT_NEAR(at(1, "time_ms").real, 1, 1e-9);
  }
}

}  // namespace
}  // namespace syslab::report
