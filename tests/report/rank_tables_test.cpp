// Tables and sentences about steps on several ranks: rows of other sizes, backends and wires stand apart.
#include "tests/report/ratio_fixture.hpp"

namespace syslab::report {
namespace {

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
        "host", {time_record("time", {1e-3}, worker::kAllRanks)}, 2);
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

// A class on ranks is timed with one strategy alone: what it costs, and how many times ours, is seen beside ours around
// the same module.
TEST_F(RatioTables, AClassOnRanksStandsBesideOursInTorch) {
  const auto add_step = [&](const std::string& strategy, const std::string& implementation, const Time& time,
                            const std::string& author = "") {
    fixture_.add({.experiment = "ddp_overlap_individual_parameters_benchmarking",
                  .params = {{"model", std::string("tiny")},
                             {"batch", std::int64_t{2}},
                             {"context", std::int64_t{8}},
                             {"precision", std::string("fp32")},
                             {"strategy", strategy}},
                  .implementation = implementation,
                  .records = {right_result(), time_record("time", time, worker::kAllRanks)},
                  .author = author,
                  .ranks = 2});
  };
  const Time none{1e-3}, ours{2e-3}, mine{5e-3};
  add_step("none", "host", {0.1e-3});
  add_step("overlap", "host", {0.2e-3});
  add_step("none", "ours_in_torch", none);
  add_step("naive", "ours_in_torch", {9e-3});
  add_step("overlap", "ours_in_torch", ours);
  add_step("overlap", "torchs_own", {4e-3});
  add_step("overlap", "me", mine, "me");
  fill_from("ddp_overlap_individual_parameters_benchmarking", "steps");
  ASSERT_EQ(table_.result.rows.size(), 7U);
  int seen = 0;
  for (std::size_t row = 0; row < 7; ++row) {
    const std::string implementation = text(row, "implementation"), strategy = text(row, "strategy");
    if (implementation == "me") {
      ++seen;
      EXPECT_NEAR(at(row, "over_none").real, 4, 1e-9);
      EXPECT_NEAR(at(row, "over_none_low").real, 1e3 * (mine.low - none.high), 1e-9);
      expect_ratio(row, "of_ours", mine, ours);
    } else if (implementation == "torchs_own") {
      ++seen;
      EXPECT_NEAR(at(row, "over_none").real, 3, 1e-9);
      EXPECT_DOUBLE_EQ(at(row, "of_ours").real, 2);
    } else {
      EXPECT_EQ(text(row, "of_ours"), "–") << "ours beside itself";
      const bool ours_apart = implementation == "host" && strategy == "overlap";
      EXPECT_NEAR(at(row, "over_none").real, ours_apart ? 0.1 : at(row, "over_none").real, 1e-9);
    }
  }
  EXPECT_EQ(seen, 2);
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
                  .records = {right_result(), time_record("time", {seconds}, worker::kAllRanks)},
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
                  .records = {right_result(), time_record("time", {seconds}, worker::kAllRanks),
                              time_record("exposed", {seconds / 2}, worker::kAllRanks), metric("forward", 1e-3),
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
    EXPECT_EQ(text(0, "sent"), "uncompressed");
    EXPECT_NEAR(at(0, "time_ms").real, 2, 1e-9);
    EXPECT_EQ(text(1, "sent"), "in bf16");
    EXPECT_NEAR(at(1, "time_ms").real, 1, 1e-9);
  }
}

}  // namespace
}  // namespace syslab::report
