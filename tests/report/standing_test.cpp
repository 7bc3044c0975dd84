#include "report/standing.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "contract/shortage.hpp"
#include "core/resources.hpp"
#include "core/text/json_text.hpp"
#include "report/report.hpp"
#include "tests/report/fixture.hpp"
#include "tests/report/tables.hpp"

namespace syslab::report {
namespace {

registry::Registry of_ranks() {
  registry::Registry registry;
  registry.add(registry::experiment("naive_ddp_benchmarking")
                   .title("Naive DDP")
                   .problem("2026", "naive_ddp_benchmarking", 3)
                   .axis("model", {std::string("tiny")}, "sizes of the model")
                   .runs([](worker::CaseContext&) {}));
  registry.seal();
  return registry;
}

// What the problem's table is said to be, with cases that ended like this.
class Standing : public ::testing::Test {
 protected:
  void add(Status status, const std::string& detail, int ranks = 2, std::vector<worker::Record> records = {}) {
    fixture_.add({.experiment = "naive_ddp_benchmarking",
                  .params = {{"model", std::string("tiny")},
                             {"batch", std::int64_t{8}},
                             {"context", std::int64_t{16}},
                             {"precision", std::string("fp32")},
                             {"strategy", std::string("naive")}},
                  .implementation = "library",
                  .records = std::move(records),
                  .ranks = ranks,
                  .status = status,
                  .detail = detail});
  }
  void add(const Shortage& needs) {
    add(Status::unsupported, needs.text(), needs.needed,
        {worker::FactRecord{json_text(Json{{"needs", to_json(needs)}})}});
  }
  std::string of_the_table() {
    ReportOptions options = everything();
    options.experiments = {"naive_ddp_benchmarking"};
    const std::string text = render(of_ranks(), fixture_.store(), options).text;
    const std::string item = "Time of a step and its part of communication. → ";
    const std::size_t at = text.find(item) + item.size();
    return text.substr(at, text.find('\n', at) - at);
  }

  FixtureStore fixture_;
};

constexpr const char* kCommand = "`syslab run naive_ddp_benchmarking`";

TEST_F(Standing, OfAMeasuredTableIsBelow) {
  add(Status::timeout, "after 5 s", 4);
  add(Status::ok, "", 2,
      {worker::CheckRecord{.name = "reference:y", .outcome = Outcome::passed, .cases_run = 1, .seed = "7"},
       worker::MetricRecord{.name = "time", .unit = "s", .value = 1e-3, .low = 9e-4, .high = 1.1e-3, .n = 10}});
  EXPECT_EQ(of_the_table(), "below: Naive DDP");
}

TEST_F(Standing, OfATableThatRanOutOfMemoryIsBelow) {
  add(Status::oom, "needs 242 GiB");
  EXPECT_EQ(of_the_table(), "below: Naive DDP");
}

TEST_F(Standing, OfAnEmptyTableIsTheCommand) { EXPECT_EQ(of_the_table(), std::string("not measured: ") + kCommand); }

TEST_F(Standing, OfCasesThatAllNeedMoreGpusIsHowManyTheLeastNeeds) {
  for (const int gpus : {4, 2, 16}) add(Shortage{Shortage::Of::gpus, gpus});
  EXPECT_EQ(of_the_table(), std::string("not measured, needs 2 GPUs: ") + kCommand);
}

TEST_F(Standing, OfCasesThatAllNeedMoreRanksIsHowManyTheLeastNeeds) {
  for (const int ranks : {16, 8}) add(Shortage{Shortage::Of::ranks, ranks});
  EXPECT_EQ(of_the_table(), std::string("not measured, needs 8 ranks: ") + kCommand);
}

TEST_F(Standing, OfACaseWhoseReasonIsTextAloneIsHowItEnded) {
  add(Shortage{Shortage::Of::gpus, 4});
  add(Status::unsupported, "needs 2 GPUs");
  EXPECT_EQ(of_the_table(), std::string("nothing was measured (2 unsupported): ") + kCommand);
}

TEST(TablesOfRanks, TellWhatTheirCasesNeed) {
  const auto holds = [](const Resource& table, const char* words) {
    return table.text.find(words) != std::string_view::npos;
  };
  int found = 0;
  for (const Resource& table : resources("experiments/")) {
    const bool of_ranks =
        holds(table, "world_size AS ranks") || holds(table, "v_data_parallel") || holds(table, "v_sharded_state");
    if (!of_ranks || !holds(table, "status|1|status")) continue;
    ++found;
    EXPECT_TRUE(holds(table, "-> '$.needs' AS needs")) << table.path;
  }
  EXPECT_EQ(found, 8);
}

class ShortageOfJson : public ::testing::TestWithParam<const char*> {};

TEST_P(ShortageOfJson, IsNone) { EXPECT_EQ(shortage_of(json_or_discarded(GetParam())), std::nullopt); }

INSTANTIATE_TEST_SUITE_P(OfNoNumberOfGpusOrRanks, ShortageOfJson,
                         ::testing::Values("", "null", "6", "{}", R"({"hosts": 2})", R"({"gpus": -2})",
                                           R"({"gpus": 2.5})", R"({"gpus": "2"})", R"({"gpus": 4294967298})",
                                           R"({"gpus": 2, "ranks": 2})"));

TEST_F(Standing, OfRowsWithoutAResultIsHowTheyEnded) {
  add(Shortage{Shortage::Of::gpus, 4});
  add(Status::timeout, "after 5 s", 2);
  add(Status::check_failed, "loss is wrong", 3);
  add(Status::timeout, "after 5 s", 1);
  EXPECT_EQ(of_the_table(), std::string("nothing was measured (1 wrong, 2 timeout, 1 unsupported): ") + kCommand);
}

TEST(HasResult, WhereARowEndedWellOrRanOutOfMemory) {
  Table table = speeds();
  EXPECT_TRUE(has_result(table));
  auto& rows = table.result.rows;
  rows = {rows[1]};
  EXPECT_TRUE(has_result(table)) << "out of memory";
  rows = {speeds().result.rows[2]};
  EXPECT_FALSE(has_result(table)) << "wrong";
  rows[0][8] = null();
  EXPECT_TRUE(has_result(table)) << "a row that tells no status";
  rows.clear();
  EXPECT_FALSE(has_result(table));
}

TEST(HasResult, OfLawsIsOfThoseThatWereReached) {
  Table laws;
  laws.result.columns = {"law", "outcome"};
  laws.result.rows = {{cell("a"), cell("not_run")}};
  EXPECT_FALSE(has_result(laws));
  laws.result.rows.push_back({cell("b"), cell("falsified")});
  EXPECT_TRUE(has_result(laws));
}

}  // namespace
}  // namespace syslab::report
