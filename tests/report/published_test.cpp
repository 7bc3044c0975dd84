// Published numbers stand beside ours only where kind of device, dtype, phase and case are the same.
#include "report/published.hpp"
#include "core/resources.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/cells.hpp"
#include "report/section.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {
namespace {

constexpr const char* kH100 = "NVIDIA H100 80GB HBM3";

Params case_with(const std::string& dtype, const std::string& pass) {
  return {{"batch", std::int64_t{1}},
          {"heads", std::int64_t{1}},
          {"seq", std::int64_t{1024}},
          {"head_dim", std::int64_t{64}},
          {"dtype", dtype},
          {"causal", true},
          {"pass", pass}};
}

// "source: published" of each row.
std::vector<std::string> beside(const std::string& gpu, const std::string& implementation, const Params& params) {
  FixtureStore fixture;
  fixture.add_benchmark_run(gpu, implementation, params);
  const Table table = shared_table(fixture.store(), "published", "flash_benchmarking");
  std::vector<std::string> found;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    found.push_back(plain(cell_of(table.result, row, "source")) + ": " +
                    plain(cell_of(table.result, row, "published")));
  }
  return found;
}

using Found = std::vector<std::string>;

TEST(Published, StandsBesideTheSameCaseOnTheSameKindOfDevice) {
  const Found h100{"brandon-snider/cs336-a2, writeup.typ: 0.021"};
  EXPECT_EQ(beside(kH100, "flash_tiled", case_with("bf16", "forward")), h100);
  EXPECT_EQ(beside("NVIDIA H100-SXM5-80GB", "flash_tiled", case_with("bf16", "forward")), h100);
  EXPECT_EQ(beside("NVIDIA H800", "flash_tiled", case_with("bf16", "forward")),
            Found{"ShibukiZero/assignment2-systems, branch solutions, writeup.md: 0.046"});
}

TEST(Published, SaysNothingOfOtherDevicesDtypesPhasesAndSizes) {
  EXPECT_EQ(beside("", "flash_tiled", case_with("bf16", "forward")), Found{}) << "a CPU beside a GPU's number";
  EXPECT_EQ(beside("NVIDIA H200", "flash_tiled", case_with("bf16", "forward")), Found{});
  EXPECT_EQ(beside("NVIDIA GH1000", "flash_tiled", case_with("bf16", "forward")), Found{}) << "a part of a word";
  EXPECT_EQ(beside(kH100, "flash_tiled", case_with("fp16", "forward")), Found{});
  EXPECT_EQ(beside(kH100, "flash_tiled", case_with("bf16", "optimizer")), Found{});
  Params other = case_with("bf16", "forward");
  other.set("causal", false);
  EXPECT_EQ(beside(kH100, "flash_tiled", other), Found{}) << "another mask";
}

TEST(Published, EachPhaseAndImplementationHasItsOwn) {
  EXPECT_EQ(beside(kH100, "flash_tiled", case_with("bf16", "backward")),
            Found{"brandon-snider/cs336-a2, writeup.typ: 0.109"});
  EXPECT_EQ(beside(kH100, "literal", case_with("bf16", "forward")),
            Found{"brandon-snider/cs336-a2, writeup.typ: 0.064"});
  EXPECT_EQ(beside(kH100, "mine", case_with("bf16", "forward")), Found{"brandon-snider/cs336-a2, writeup.typ: 0.021"})
      << "what somebody hands in is measured against fused kernels";
}

TEST(Published, TellsHowManyTimesAsMuchItIs) {
  FixtureStore fixture;
  fixture.add_benchmark_run(kH100, "flash_tiled", case_with("bf16", "forward"));
  const Table table = shared_table(fixture.store(), "published", "flash_benchmarking");
  ASSERT_EQ(table.result.rows.size(), 1U);
  EXPECT_NEAR(cell_of(table.result, 0, "ours").real, 0.020, 1e-12) << "in the published unit, ms";
  EXPECT_NEAR(cell_of(table.result, 0, "published_over_ours").real, 0.021 / 0.020, 1e-9);
  EXPECT_EQ(plain(cell_of(table.result, 0, "case")),
            "batch 1, causal yes, dtype bf16, head_dim 64, heads 1, pass forward, seq 1024");
}

TEST(Published, EveryNumberHasASourceADeviceAndACase) {
  const Json entries = Json::parse(published_entries(std::string(find_resource("reports/published.json").value())));
  EXPECT_GT(entries.size(), 400U);
  for (const Json& entry : entries) {
    for (const char* field : {"experiment", "source", "device", "metric", "unit"}) {
      EXPECT_FALSE(entry.at(field).get<std::string>().empty()) << field << " of " << entry.dump();
    }
    EXPECT_FALSE(entry.at("params").empty()) << entry.dump();
    EXPECT_GT(entry.at("value").get<double>(), 0) << entry.dump();
  }
}

TEST(Published, AnExperimentHasItsOwnNumbers) {
  const Json entries = Json::parse(published_entries_of("flash_benchmarking"));
  EXPECT_GT(entries.size(), 1U);
  for (const Json& entry : entries) EXPECT_EQ(entry.at("experiment"), "flash_benchmarking");
  EXPECT_EQ(published_entries_of("naive_ddp"), "[]");
}

TEST(Published, OfAnotherShapeIsRefused) {
  const auto file = [](const std::string& series) {
    return R"({"sources": {"S": {"name": "n", "device": "D"}}, "series": [)" + series + "]}";
  };
  const std::string good = R"({"experiment": "e", "source": "S", "unit": "ms", "axes": ["seq"], "values": [[1, 2.5]]})";
  EXPECT_EQ(Json::parse(published_entries(file(good))).at(0).at("params").at("seq"), 1);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return file(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_THROW(published_entries("[]"), Error);
  EXPECT_THROW(published_entries(with("\"S\"", "\"T\"")), Error) << "a source that is not told";
  EXPECT_THROW(published_entries(with("\"ms\"", "\"fortnight\"")), Error);
  EXPECT_THROW(published_entries(with("[1, 2.5]", "[1]")), Error);
  EXPECT_THROW(published_entries(with("2.5", "\"OOM\"")), Error);
}

}  // namespace
}  // namespace syslab::report
