// What kernels took of a multiprocessor, from the facts of attempts on a GPU: a row for each way in which a kernel was
// compiled and launched.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/cells.hpp"
#include "report/section.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {
namespace {

constexpr const char* kForward =
    R"({"name":"flash forward","threads":128,"registers":250,"shared_bytes":98304,"local_bytes":8,"blocks":2,"occupancy":0.125})";
constexpr const char* kCombine =
    R"({"name":"flash combine","threads":128,"registers":40,"shared_bytes":0,"local_bytes":0,"blocks":12,"occupancy":0.75})";

void add_case(FixtureStore& fixture, const std::string& dtype, std::int64_t head_dim, const std::string& kernels,
              bool right = true) {
  FixtureStore::Attempt attempt;
  attempt.experiment = "flash_forward";
  attempt.implementation = "flash_mma";
  attempt.protocol = "kernel";
  attempt.gpu = "NVIDIA H100 80GB HBM3";
  attempt.params = {{"head_dim", head_dim}, {"dtype", dtype}, {"seq", std::int64_t{1024}}};
  attempt.records = {
      worker::CheckRecord{.name = "reference:out", .outcome = right ? Outcome::passed : Outcome::falsified},
      worker::MetricRecord{.name = "time", .unit = "s", .value = 1e-3},
      worker::FactRecord{R"({"device":"cuda","kernels":[)" + kernels + "]}"}};
  if (!right) attempt.status = Status::check_failed;
  fixture.add(attempt);
}

std::vector<std::string> rows_of(const Table& table) {
  std::vector<std::string> rows;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    std::string line;
    for (const char* column : {"implementation", "kernel", "head_dim", "dtype", "threads", "registers", "shared_kib",
                               "local_bytes", "blocks", "occupancy"}) {
      line += (line.empty() ? "" : " | ") + plain(cell_of(table.result, row, column));
    }
    rows.push_back(line);
  }
  return rows;
}

TEST(KernelsTable, HasARowForEachWayOfAKernel) {
  FixtureStore fixture;
  add_case(fixture, "bf16", 64, std::string(kForward) + "," + kCombine);
  add_case(fixture, "fp16", 64, kForward);
  add_case(fixture, "bf16", 128, kCombine);
  add_case(fixture, "bf16", 256, R"({"name":"of a wrong result","threads":1})", false);
  const Table table = shared_table(fixture.store(), "kernels", "flash_forward");
  EXPECT_EQ(rows_of(table),
            (std::vector<std::string>{"flash_mma | flash combine | 64, 128 | bf16 | 128 | 40 | 0 | 0 | 12 | 75",
                                      "flash_mma | flash forward | 64 | bf16, fp16 | 128 | 250 | 96 | 8 | 2 | 12.5"}));
}

TEST(LaunchedTable, HasTheNamesThatAFilesOwnProcessTold) {
  FixtureStore fixture;
  FixtureStore::Attempt attempt;
  attempt.experiment = "flash_forward";
  attempt.implementation = "me";
  attempt.protocol = "kernel";
  attempt.gpu = "NVIDIA H100 80GB HBM3";
  const auto add = [&](std::int64_t seq, const char* code) {
    attempt.params = {{"seq", seq}};
    attempt.records = {worker::CheckRecord{.name = "reference:out", .outcome = Outcome::passed},
                       worker::MetricRecord{.name = "time", .unit = "s", .value = 1e-3},
                       worker::FactRecord{fmt::format(R"({{"device":"cuda","code":{}}})", code)}};
    fixture.add(attempt);
  };
  add(512,
      R"({"why":"names alone","told_by":"its own process","kernels":[{"name":"z first","launches":1},{"name":"b","launches":2}]})");
  add(1024, R"({"why":"names alone","told_by":"its own process","kernels":[{"name":"b","launches":5}]})");
  attempt.implementation = "flash_mma";
  add(512, R"({"digest":"c0de","kernels":[{"name":"ours","code":"c0de","launches":1}]})");
  const Table table = shared_table(fixture.store(), "launched", "flash_forward");
  std::vector<std::string> rows;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    rows.push_back(plain(cell_of(table.result, row, "implementation")) + " " +
                   plain(cell_of(table.result, row, "kernel")) + " " + plain(cell_of(table.result, row, "launches")));
  }
  EXPECT_EQ(rows, (std::vector<std::string>{"me b 5", "me z first 1"}));
}

TEST(KernelsTable, IsEmptyWhereNoKernelOfOursRan) {
  FixtureStore fixture;
  fixture.add_kernel_run();
  EXPECT_TRUE(shared_table(fixture.store(), "kernels", "flash_forward").result.rows.empty());
}

}  // namespace
}  // namespace syslab::report
