// Tables of the profiling experiments over attempts that lie beside each other and must not be taken for one: of two
// machines, protocols, batches, modes or authors.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/resources.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {
namespace {

using store::Cell;
using worker::Record;

// A phase's kernels in ms of one step; phases and kernels as v_kernel has them.
struct Kernel {
  std::string phase, operation;
  double ms;
};

Record metric(const std::string& name, double value) {
  return worker::MetricRecord{.name = name, .unit = "1", .value = value};
}

worker::CheckRecord passed() {
  worker::CheckRecord check;
  check.name = "reference:loss";
  check.outcome = "passed";
  check.cases_run = 1;
  check.seed = "7";
  return check;
}

class ProfileTables : public ::testing::Test {
 protected:
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

  FixtureStore fixture_;
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
  const std::size_t first = real(0, "half") == 150 ? 0 : 1;
  EXPECT_EQ(real(first, "full"), 400);
  EXPECT_EQ(real(first, "half_forward"), 120);
  EXPECT_EQ(real(first, "full_forward"), 200);
  EXPECT_EQ(real(1 - first, "full"), 500);
}

TEST_F(ProfileTables, WhatABlockGivesBackIsWhatTheLogSaysItKept) {
  constexpr std::int64_t kMiB = 1048576;
  FixtureStore::Attempt attempt{.experiment = "memory_profiling", .params = step_of(4), .implementation = "fused"};
  attempt.records = {passed(), metric("parameters", 1000), metric("predicted_block_bytes", 99.0 * kMiB),
                     metric("block_gradient_bytes", 40.0 * kMiB), metric("expected_block_gradient_bytes", 40.0 * kMiB)};
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
  EXPECT_EQ(real(0, "net"), 24);
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
