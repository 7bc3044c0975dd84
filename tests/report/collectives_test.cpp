// What is said of collectives: of samples with two modes, of laws that times do not follow, of more ranks.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/report/writeup.hpp"

namespace syslab::report {
namespace {

class TwoModes : public Writeup {
 protected:
  // Samples of which a third take three times as long, or all the same.
  void add_size(std::int64_t bytes, double seconds, bool two_modes, bool back_to_back = false) {
    std::vector<Record> records{timed("time", seconds, worker::kAllRanks), timed("pipelined", seconds),
                                metric("payload_bytes", static_cast<double>(bytes)), metric("bus_factor", 1)};
    std::vector<double> values;
    for (int i = 0; i < 30; ++i) values.push_back((two_modes && i % 3 == 0 ? 3 : 1) * seconds + 1e-9 * i);
    records.push_back(worker::SampleRecord{.series = "time", .unit = "s", .values = values});
    const auto labels = [](bool has) { return std::string(has ? R"(["bimodal"])" : "[]"); };
    records.push_back(
        fact(R"({"noise": )" + labels(two_modes) + R"(, "pipelined": {"noise": )" + labels(back_to_back) + "}}"));
    add("distributed_communication_single_node", {{"operation", word("all_reduce")}, {"bytes", bytes}}, "nccl", records,
        {.gpu = "Example_GPU", .ranks = 2});
  }
};

TEST_F(TwoModes, AreNotAveragedFittedOrCompared) {
  const std::string name = "distributed_communication_single_node";
  add_size(1024, 1e-5, false);
  add_size(1 << 20, 1e-4, true);
  add_size(1 << 24, 1e-3, false);
  const Table rows = table(name, name);
  ASSERT_EQ(rows.result.rows.size(), 3U);
  EXPECT_EQ(plain(cell_of(rows.result, 1, "time_ms")), "0.1 (67 %) and 0.3 (33 %)");
  for (const char* column : {"algbw", "busbw"}) EXPECT_EQ(plain(cell_of(rows.result, 1, column)), "–") << column;
  const Table fits = table(name, "laws_of_time");
  const store::ResultSet& fit = fits.result;
  for (std::size_t row = 0; row < fit.rows.size(); ++row) {
    const bool single = plain(cell_of(fit, row, "series")) == "one at a time";
    EXPECT_EQ(plain(cell_of(fit, row, "sizes")), single ? "2" : "3");
    EXPECT_EQ(plain(cell_of(fit, row, "fit")), single ? "two sizes only; without 1048576 B (two modes)" : "fits");
  }
  EXPECT_EQ(words(table(name, "ranks").result, "r2").count("two modes"), 1U);
  for (std::size_t row = 0; row < 3; ++row) {
    const store::ResultSet line = drawn(name, "time");
    const bool left_out = plain(cell_of(line, row, "status")) == "two modes";
    EXPECT_EQ(cell_of(line, row, "time").type == Cell::Type::null, left_out);
    EXPECT_EQ(left_out, row == 1);
  }
}

class Fits : public TwoModes {
 protected:
  void add_buckets() {
    add("ddp_bucketed_benchmarking", bucketed(1), "fused",
        {timed("time", 1e-3, worker::kAllRanks), metric("buckets", 435), metric("gradient_bytes", 8e9)},
        {.gpu = "Example_GPU", .ranks = 2});
  }
  std::string best_size() { return said("ddp_bucketed_benchmarking", "b_overhead"); }
  std::string fits() { return shown("distributed_communication_single_node", "laws_of_time"); }
};

TEST_F(Fits, OfTimesThatFollowNoLawSaySo) {
  add_size(1024, 1e-5, false);
  add_size(1 << 20, 1e-3, false);
  add_size(1 << 24, 1.1e-3, false);
  const std::string text = said("distributed_communication_single_node", "factors");
  EXPECT_TRUE(has(text, "does not fit the back-to-back times")) << text;
  EXPECT_TRUE(has(fits(), "does not fit")) << fits();
  add_buckets();
  EXPECT_TRUE(has(best_size(), "no best size follows: α + S/β is off by up to")) << best_size();
  EXPECT_EQ(words(drawn("ddp_bucketed_benchmarking", "overhead"), "series"), (std::set<std::string>{"measured"}));
}

TEST_F(Fits, LeaveOutASizeWhoseBackToBackCallsHaveTwoModes) {
  const double call = 1e-5, per_byte = 1e-11;
  const auto law = [&](std::int64_t bytes) { return call + per_byte * static_cast<double>(bytes); };
  add_size(1024, law(1024), false);
  add_size(1 << 20, 10 * law(1 << 20), false, true);
  add_size(1 << 24, law(1 << 24), false);
  add_size(1 << 28, law(1 << 28), false);
  EXPECT_TRUE(has(fits(), "fits; without 1048576 B (two modes)")) << fits();
  const std::string name = "distributed_communication_single_node";
  const store::ResultSet rows = table(name, name).result;
  for (std::size_t row = 0; row < rows.rows.size(); ++row) {
    EXPECT_EQ(plain(cell_of(rows, row, "pipelined")) == "two modes", row == 1);
    EXPECT_EQ(plain(cell_of(rows, row, "busbw_pipelined")) == "–", row == 1);
  }
  add_buckets();
  EXPECT_TRUE(has(best_size(), "o = 10 µs and w = 100 GB/s were measured: n = 89.4, 85.3 MiB a bucket, 1.79 ms"))
      << best_size();
  EXPECT_EQ(words(drawn("ddp_bucketed_benchmarking", "overhead"), "series").size(), 3U);
}

// A median whose interval reaches three times as far bears one digit, and the interval stands beside it.
TEST_F(Writeup, AnAllReduceWithAWideIntervalHasOneDigit) {
  const std::string name = "distributed_communication_single_node";
  const auto took = [&](std::int64_t bytes, double ms, double high) {
    const worker::MetricRecord time{.name = "time",
                                    .unit = "s",
                                    .value = 1e-3 * ms,
                                    .low = 0.98e-3 * ms,
                                    .high = 1e-3 * high,
                                    .n = 10,
                                    .rank = worker::kAllRanks};
    add(name, {{"operation", word("all_reduce")}, {"bytes", bytes}}, "nccl", {time},
        {.gpu = "Example_GPU", .ranks = 2});
  };
  took(1'000'000, 0.0369, 0.0407);
  took(100'000'000, 0.3947, 1.259);
  const std::string text = said(name, "factors");
  EXPECT_TRUE(has(text, "of 1, 100 MB takes 0.0369, 0.4 ms (slowest rank")) << text;
  EXPECT_TRUE(has(text, "95 % interval at 100 MB: 0.387 to 1.26)")) << text;
}

TEST_F(Writeup, CollectivesOfACpuGrowWithRanksAndSayWhatStoppedThem) {
  const std::string name = "distributed_communication_single_node";
  const auto took = [&](std::int64_t bytes, int ranks, double ms, Status status = Status::ok) {
    add(name, {{"operation", word("all_reduce")}, {"bytes", bytes}}, "gloo",
        {timed("time", 1e-3 * ms, worker::kAllRanks)}, {.ranks = ranks, .status = status});
  };
  for (const int ranks : {2, 4, 6}) {
    took(1'000'000, ranks, 0.5 * ranks);
    took(10'000'000, ranks, 4 + ranks);
  }
  EXPECT_TRUE(
      has(said(name, "many_ranks"),
          "on 2, 4, 6 ranks an all-reduce of 1 MB takes 1, 2, 3 ms, of 10 MB 6, 8, 10 ms: about 3 and 1.7 times as "
          "long on 6 as on 2 (ring: 5 and 1.67). Not run: 100 MB on 2, 4, 6 and 1000 MB on 2, 4, 6."))
      << said(name, "many_ranks");
  took(100'000'000, 6, 1, Status::aborted);
  EXPECT_TRUE(has(said(name, "many_ranks"), "1.67). The run was stopped before 100 MB on 2, 4, 6 and 1000 MB"))
      << said(name, "many_ranks");
}

// A small message under one protocol and a large one under another are no pair.
TEST_F(Writeup, MoreGpusAreHeldAgainstFewerUnderOneProtocol) {
  const std::string name = "distributed_communication_single_node";
  const auto took = [&](std::int64_t bytes, int ranks, double ms, const std::string& protocol) {
    add(name, {{"operation", word("all_reduce")}, {"bytes", bytes}}, "nccl",
        {timed("time", 1e-3 * ms, worker::kAllRanks), timed("pipelined", 1e-3 * ms, worker::kAllRanks)},
        {.protocol = protocol, .gpu = "Example_GPU", .ranks = ranks});
  };
  for (const int ranks : {2, 4}) {
    took(1'000'000, ranks, 0.01 * ranks, "cs336");
    took(100'000'000, ranks, ranks, "kernel");
  }
  EXPECT_FALSE(has(said(name, "machine_limit"), "From 2 to 4 GPUs")) << said(name, "machine_limit");
  for (const int ranks : {2, 4}) took(100'000'000, ranks, 0.5 + 0.25 * ranks, "cs336");
  EXPECT_TRUE(has(said(name, "machine_limit"),
                  "From 2 to 4 GPUs (ring: 3 and 1.5 times) 1 MB back to back takes 2 times "
                  "as long, 100 MB 1.5 times as long."))
      << said(name, "machine_limit");
}

}  // namespace
}  // namespace syslab::report
