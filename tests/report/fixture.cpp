#include "tests/report/fixture.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <set>

#include "core/ids.hpp"

namespace syslab::report {
namespace {

using store::AttemptRow;
using store::PlanRow;
using worker::CheckRecord;
using worker::FactRecord;
using worker::MetricRecord;
using worker::Record;

Params params(std::int64_t seq, bool causal, const std::string& dtype = "fp32") {
  return {{"batch", std::int64_t{1}},
          {"heads", std::int64_t{8}},
          {"heads_kv", std::int64_t{0}},
          {"seq", seq},
          {"seq_k", std::int64_t{0}},
          {"head_dim", std::int64_t{64}},
          {"dtype", dtype},
          {"causal", causal},
          {"align", std::string("top_left")}};
}

PlanRow planned(int seq, const Params& axes, const std::string& implementation, const std::string& role = "") {
  PlanRow row;
  row.seq = seq;
  row.experiment = "flash_forward";
  row.version = "1";
  row.params = axes;
  row.case_uid = case_uid("flash_forward", "1", axes);
  row.implementation = {implementation, "digest-of-" + implementation, "C++", implementation == "mine", "", role};
  row.task = Task::measure;
  row.seed = "7";
  return row;
}

// Facts of the rungs that a plan names: of a few what our ladder says, of all their role.
std::vector<store::RungFactRow> facts_of(const std::vector<PlanRow>& plan) {
  const std::vector<store::RungFactRow> known{{"", "flash_tiled", "device", "cpu", ""},
                                              {"", "flash_tiled", "works", "plain loops", ""},
                                              {"", "flash_tiled", "forward_tile", "96 × 128", "queries × keys"},
                                              {"", "flash_mma", "device", "cuda", ""},
                                              {"", "flash_mma", "dtypes", "bf16, fp16", ""},
                                              {"", "flash_mma", "forward_tile_64", "128 × 64", "queries × keys"},
                                              {"", "flash_fp32", "device", "cuda", ""},
                                              {"", "flash_fp32", "dtypes", "fp32", ""},
                                              {"", "flash_tf32", "device", "cuda", ""},
                                              {"", "flash_tf32", "dtypes", "fp32", ""},
                                              {"", "flash_tf32", "tf32", "1", ""}};
  std::vector<store::RungFactRow> rows;
  std::set<std::string> done;
  for (const PlanRow& row : plan) {
    const store::ImplementationRow& one = row.implementation;
    if (one.is_mine || !done.insert(one.name).second) continue;
    for (store::RungFactRow fact : known) {
      if (fact.rung != one.name) continue;
      fact.experiment = row.experiment;
      rows.push_back(std::move(fact));
    }
    if (!one.role.empty()) rows.push_back({row.experiment, one.name, "role", one.role, ""});
  }
  return rows;
}

std::vector<Record> measured(double seconds, double error) {
  const MetricRecord time{
      .name = "time", .unit = "s", .value = seconds, .low = 0.97 * seconds, .high = 1.02 * seconds, .n = 20};
  const MetricRecord rate{.name = "tflops", .unit = "TFLOP/s", .value = 1e-4 / seconds, .n = 20};
  const MetricRecord scratch{.name = "peak_scratch_bytes", .unit = "B", .value = 65536.0};
  CheckRecord check;
  check.name = "reference:out";
  check.outcome = Outcome::passed;
  check.cases_run = 1;
  check.seed = "7";
  check.worst_error = error;
  check.tolerance = 1e-5;
  return {check, time, rate, scratch, FactRecord{R"({"cache": "hot"})"}};
}

}  // namespace

FixtureStore::FixtureStore() {
  static int number = 0;
  folder_ = std::filesystem::temp_directory_path() / fmt::format("syslab-report-{}-{}", getpid(), number++);
  std::filesystem::create_directories(folder_);
  store_.emplace(store::Store::open(folder_ / "fixture.db", store::Mode::create));
}

FixtureStore::~FixtureStore() {
  store_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void FixtureStore::add_run(const std::string& uid, const std::string& protocol, const std::vector<std::string>& argv,
                           double time_factor) {
  store::RunRow run;
  run.uid = uid;
  run.verb = "run";
  run.argv = argv;
  run.protocol_json = fmt::format(R"({{"name": "{}"}})", protocol);
  run.root_seed = "0";
  run.environment_json =
      R"({"host": {"name": "box"}, "cpu": {"model": "Example_CPU 9000", "logical": 4, "usable": 2}, "gpu": []})";
  run.comparability_key = "key-of-box";
  run.build_json = R"({"version": "0.1.0", "git_sha": "0123456789abcdef", "git_dirty": false})";

  const std::vector<PlanRow> plan{
      planned(0, params(128, false), "naive", "naive"),
      planned(1, params(128, false), "flash_tiled"),
      planned(2, params(128, true), "naive", "naive"),
      planned(3, params(128, true), "flash_tiled"),
      planned(4, params(65536, false), "naive", "naive"),
      planned(5, params(65536, false), "mine"),
      planned(6, params(128, false), "reference", "gpu_reference"),  // skipped, and shown: none checks against it

  };
  run.rung_facts = facts_of(plan);
  const store::RowId id = store_->begin_run(run, plan);
  int number = 0;
  const auto finish = [&](int seq, Status status, const std::string& detail, std::vector<Record> records) {
    AttemptRow attempt;
    attempt.uid = fmt::format("{}-{:04}", uid, number++);
    attempt.plan_seq = seq;
    attempt.status = status;
    attempt.detail = detail;
    for (const Record& record : records) {
      if (const auto* fact = std::get_if<FactRecord>(&record)) attempt.facts_json = fact->json;
    }
    attempt.records = std::move(records);
    attempt.started_at = attempt.ended_at = "2026-05-01T12:00:00.000Z";
    store_->attempt_started(id, seq, attempt.uid);
    store_->finish_attempt(id, attempt);
  };
  finish(0, Status::ok, "", measured(2e-3 * time_factor, 2e-7));
  finish(1, Status::ok, "", measured(1e-3 * time_factor, 4e-7));
  finish(2, Status::ok, "", measured(2e-3 * time_factor, 2e-7));
  finish(3, Status::ok, "", measured(6e-4 * time_factor, 5e-7));
  finish(4, Status::oom, "needs 137 GiB", {});
  CheckRecord wrong;
  wrong.name = "reference:out";
  wrong.outcome = Outcome::falsified;
  wrong.cases_run = 1;
  wrong.seed = "7";
  wrong.message = "out[0, 17]: found 1, expected 2 | 12 of 4096 wrong";
  wrong.worst_error = 1.0;
  wrong.tolerance = 1e-5;
  finish(5, Status::check_failed, "out is wrong", {wrong});
  finish(6, Status::skipped, "the oracle computes in fp64", {});
}

void FixtureStore::add_smoke_run() {
  add_run("01900000-0001-7000-8000-a0001000beef", "quick",
          {"build/syslab", "run", "flash_*", "--preset", "smoke", "--db", "my file.db"}, 1.0);
}

void FixtureStore::add_kernel_run() {
  add_run("01900000-0002-7000-8000-a0002000beef", "kernel", {"syslab", "run", "flash_forward"}, 1.1);
}

void FixtureStore::add_law_run() {
  store::RunRow run;
  run.uid = "01900000-0003-7000-8000-a0003000beef";
  run.verb = "check";
  run.argv = {"syslab", "check", "flash_forward"};
  run.protocol_json = R"({"name": "kernel"})";
  run.root_seed = "0";
  run.environment_json =
      R"({"host": {"name": "box"}, "cpu": {"model": "Example_CPU 9000", "logical": 4, "usable": 2}})";
  run.comparability_key = "key-of-box";
  run.build_json = R"({"version": "0.1.0", "git_sha": "0123456789abcdef", "git_dirty": true})";
  std::vector<PlanRow> plan;
  for (const std::string law : {"attention.causal_prefix", "attention.oracle", "attention.rows_sum_to_one"}) {
    PlanRow row = planned(static_cast<int>(plan.size()), {{"contract", std::string("full")}}, "flash_tiled");
    row.task = Task::law;
    row.law = law;
    plan.push_back(row);
  }
  run.rung_facts = facts_of(plan);
  const store::RowId id = store_->begin_run(run, plan);
  const auto finish = [&](int seq, Status status, const CheckRecord& check) {
    AttemptRow attempt;
    attempt.uid = fmt::format("{}-law{}", run.uid, seq);
    attempt.plan_seq = seq;
    attempt.status = status;
    attempt.detail = check.message;
    attempt.records = {check};
    attempt.started_at = attempt.ended_at = "2026-05-01T12:00:00.000Z";
    store_->attempt_started(id, seq, attempt.uid);
    store_->finish_attempt(id, attempt);
  };
  CheckRecord held;
  held.name = "attention.causal_prefix";
  held.outcome = Outcome::passed;
  held.contract = Contract::full;
  held.cases_run = 100;
  held.seed = "7";
  held.worst_error = 2e-7;
  held.tolerance = 1e-6;
  finish(0, Status::ok, held);
  CheckRecord broken = held;
  broken.name = "attention.oracle";
  broken.outcome = Outcome::falsified;
  broken.cases_run = 3;
  broken.message = "out[0, 0, 1, 0]: found 0.5, expected 0.25";
  broken.counterexample_json = R"({"seq_q": "2"})";
  broken.reproduce = "BchARZWN0aW9u";
  broken.worst_error = 0.25;
  finish(1, Status::check_failed, broken);
  // The third law was planned and not reached.
}

void FixtureStore::add(Attempt asked) {
  static int number = 0;
  store::RunRow run;
  run.uid = fmt::format("01900000-0004-7000-8000-{:012}", number++);
  run.verb = "run";
  run.argv = {"syslab", "run", asked.experiment};
  run.protocol_json = fmt::format(R"({{"name": "{}"}})", asked.protocol);
  run.root_seed = "0";
  run.environment_json =
      fmt::format(R"({{"host": {{"name": "{}"}}, "cpu": {{"model": "Example_CPU 9000", "logical": 4}}, "gpu": [{}]}})",
                  asked.machine, asked.gpu.empty() ? "" : fmt::format(R"({{"name": "{}"}})", asked.gpu));
  run.comparability_key = "key-of-" + asked.machine + asked.gpu;
  run.build_json =
      fmt::format(R"({{"version": "0.1.0", "git_sha": "0123456789abcdef", "git_dirty": {}}})", asked.modified);
  run.author = asked.author;
  PlanRow row = planned(0, asked.params, asked.implementation, asked.role);
  row.implementation.is_mine |= !asked.author.empty();
  row.world_size = asked.ranks;
  if (!asked.law.empty()) row.task = Task::law;
  row.law = asked.law;
  row.experiment = asked.experiment;
  row.version = asked.version;
  row.case_uid = case_uid(row.experiment, row.version, asked.params);
  run.rung_facts = facts_of({row});
  const store::RowId id = store_->begin_run(run, {row});
  AttemptRow attempt;
  attempt.uid = run.uid + "-0";
  attempt.status = asked.status;
  attempt.detail = asked.detail;
  for (Record& record : asked.records) {
    if (const auto* fact = std::get_if<FactRecord>(&record)) {
      attempt.facts_json = fact->json;
    } else {
      attempt.records.push_back(std::move(record));
    }
  }
  attempt.started_at = attempt.ended_at = "2026-05-01T12:00:00.000Z";
  store_->attempt_started(id, 0, attempt.uid);
  store_->finish_attempt(id, attempt);
}

void FixtureStore::add_benchmark_run(const std::string& gpu, const std::string& implementation, const Params& axes) {
  std::vector<Record> records = measured(20e-6, 1e-7);
  records.pop_back();  // nothing is said of the cache
  add({.experiment = "flash_benchmarking",
       .params = axes,
       .implementation = implementation,
       .records = std::move(records),
       .protocol = "do_bench",
       .gpu = gpu});
}

registry::Registry fixture_registry() {
  registry::Registry registry;
  registry.add(registry::experiment("flash_forward")
                   .title("FlashAttention-2 forward pass")
                   .question("How much faster than unfused attention?")
                   .problem("2026", "flash_forward", 15)
                   .axis("seq", {std::int64_t{128}}, "queries and keys")
                   .implementation({"naive", "holds the scores", {"fp32"}})
                   .laws({{"attention.oracle", "equals the oracle"}})
                   .runs([](worker::CaseContext&) {}));
  registry.add(registry::experiment("selftest_empty")
                   .title("Does nothing")
                   .question("What does an empty case cost?")
                   .tags({"selftest"})
                   .axis("n", {std::int64_t{1}}, "how often")
                   .implementation({"empty", "nothing", {}})
                   .runs([](worker::CaseContext&) {}));
  registry.seal();
  return registry;
}

}  // namespace syslab::report
