// What a write-up says of tests: as many inputs as the least tried law had, and all tests only where none was lost.
#include <string>

#include "tests/report/writeup.hpp"

namespace syslab::report {
namespace {

constexpr const char* kForward[] = {"equals_oracle",   "lse_equals_oracle", "causal_prefix",
                                    "rows_sum_to_one", "large_scores",      "half_no_worse_than_naive"};

class TestedTables : public Writeup {
 protected:
  void search(const std::string& experiment, const std::string& implementation, const std::string& law,
              std::int64_t cases, Outcome outcome = Outcome::passed) {
    worker::CheckRecord check{.name = "attention." + law, .outcome = outcome, .cases_run = cases, .seed = "7"};
    check.contract = Contract::full;
    fixture_.add({.experiment = experiment,
                  .params = {{"contract", word("full")}},
                  .implementation = implementation,
                  .records = {check},
                  .law = check.name});
  }
  std::string told(const std::string& experiment, const std::string& file, const std::string& column) {
    const std::vector<Resource> files = resources("experiments/" + experiment + "/tables/" + file);
    EXPECT_EQ(files.size(), 1U) << file;
    Cell id;
    id.type = Cell::Type::text;
    id.text = experiment;
    const store::ResultSet found = fixture_.store().query(std::string(files.at(0).text), {id});
    for (std::size_t i = 0; i < found.columns.size(); ++i) {
      if (found.columns[i] != column) continue;
      const Cell& cell = found.rows.at(0).at(i);
      return cell.type == Cell::Type::integer ? std::to_string(cell.integer) : cell.text;
    }
    return "no column " + column;
  }
};

TEST_F(TestedTables, EachMeansTheLeastTriedLaw) {
  search("flash_forward", "flash_tiled", "equals_oracle", 100);
  search("flash_forward", "flash_tiled", "large_scores", 7);
  EXPECT_EQ(told("flash_forward", "a_tiled.sql", "cases"), "7");
  search("flash_backward", "flash_tiled", "gradients_equal_oracle", 100);
  search("flash_backward", "flash_tiled", "finite_differences", 9);
  EXPECT_NE(told("flash_backward", "a_passes.sql", "tests").find("on 9 random inputs each"), std::string::npos);
}

TEST_F(TestedTables, FactsOfARungAreThoseOfTheRunThatIsShown) {
  search("flash_forward", "flash_tiled", "equals_oracle", 100);
  store::RunRow other;  // such as one that was merged
  other.uid = "01900000-ffff-7000-8000-000000000000";
  other.verb = "check";
  other.protocol_json = R"({"name": "kernel"})";
  other.root_seed = "0";
  other.environment_json = R"({"host": {"name": "elsewhere"}})";
  other.build_json = R"({"version": "0.1.0"})";
  for (const auto& [name, value] :
       {std::pair("device", "cpu"), std::pair("works", "magic"), std::pair("forward_tile", "1 × 1")}) {
    other.rung_facts.push_back({"flash_forward", "flash_tiled", name, value, ""});
  }
  fixture_.store().begin_run(other, {});
  EXPECT_EQ(told("flash_forward", "a_tiled.sql", "tile"), "96 × 128 (queries × keys)");
  EXPECT_EQ(told("flash_forward", "a_tiled.sql", "works"), "plain loops");
}

TEST_F(TestedTables, AKernelThatLostALawHasNotPassedTheTests) {
  for (const char* const law : kForward) search("flash_forward", "flash_mma", law, 20);
  EXPECT_EQ(told("flash_forward", "b_kernels.sql", "laws"), " No law of (a) found a counterexample.");
  EXPECT_EQ(told("flash_forward", "b_kernels.sql", "kernels"), "`flash_mma` (bf16, fp16)");
  search("flash_forward", "flash_mma", "large_scores", 3, Outcome::falsified);
  EXPECT_EQ(told("flash_forward", "b_kernels.sql", "laws"),
            " Of the laws of (a) 5 found no counterexample, on 20 random inputs each.");
}

TEST_F(TestedTables, AKernelThatOnlyBenchmarksUseHasItsErrorToo) {
  search("flash_forward", "flash_mma", "equals_oracle", 20);
  worker::CheckRecord check{.name = "reference:out", .outcome = Outcome::passed, .cases_run = 1, .seed = "7"};
  check.worst_error = 1e-3;
  check.tolerance = 4e-3;
  fixture_.add({.experiment = "flash_benchmarking",
                .params = {{"dtype", word("fp32")}},
                .implementation = "flash_tf32",
                .records = {check, timed("time", 1e-3)}});
  const std::string text = told("flash_forward", "b_kernels.sql", "error");
  EXPECT_TRUE(has(text, " Of kernels used elsewhere: `flash_tf32` (fp32) O 0.001 (0.004).")) << text;
}

TEST_F(TestedTables, WhatFp32HasNotIsNotLost) {
  for (const char* const law : kForward) {
    search("flash_forward", "flash_mma", law, 20);
    const bool half = std::string(law) == "half_no_worse_than_naive";
    search("flash_forward", "flash_fp32", law, half ? 0 : 20, half ? Outcome::not_run : Outcome::passed);
  }
  EXPECT_EQ(told("flash_forward", "b_kernels.sql", "laws"), " No law of (a) found a counterexample.");
}

}  // namespace
}  // namespace syslab::report
