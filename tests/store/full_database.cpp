#include "tests/store/full_database.hpp"

#include <cstdio>
#include <filesystem>
#include <string>

#include "store/options.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::store::test {
namespace {

constexpr const char* kRunUid = "019ddd00-0000-7000-8000-000000000001";
constexpr const char* kLawRunUid = "019ddd00-0000-7000-8000-000000000002";

std::string attempt_uid(int number) {
  char text[64];
  std::snprintf(text, sizeof text, "019ddd00-0001-7000-8000-%012d", number);
  return text;
}

// One second passes between any two things.
std::string next_time() {
  static int seconds = 0;
  char text[64];
  std::snprintf(text, sizeof text, "2026-05-01T12:%02d:%02d.000Z", seconds / 60, seconds % 60);
  ++seconds;
  return text;
}

AttemptRow with_everything(int plan_seq, double seconds) {
  AttemptRow attempt = an_attempt(plan_seq, seconds);
  attempt.records.emplace_back(
      worker::MetricRecord{.name = "tflops", .unit = "TFLOP/s", .value = 1e-3 / seconds, .n = 20});
  attempt.records.emplace_back(
      worker::MetricRecord{.name = "energy", .unit = "J", .note = "no counter on this machine"});
  attempt.records.emplace_back(worker::ArtifactRecord{.kind = "log", .media_type = "text/plain", .content = "hello\n"});
  attempt.records.emplace_back(
      worker::MemoryEventRecord{.t_ns = 10, .delta_bytes = 4096, .tag = "out", .category = "output"});
  attempt.records.emplace_back(
      worker::MemoryEventRecord{.t_ns = 20, .delta_bytes = -4096, .tag = "out", .category = "output"});
  return attempt;
}

void sweep(Store& store) {
  std::vector<PlanRow> plan;
  for (int size = 0; size < 4; ++size) {
    const int first = 3 * size;
    plan.push_back(a_case(first, 64 << size, "oracle", "reference"));
    plan.push_back(a_case(first + 1, 64 << size, "torch", "peer"));
    plan.push_back(a_case(first + 2, 64 << size, "ours"));
  }
  plan[11].skip_reason = "needs 6 GPUs";
  RunRow row = a_run();
  row.uid = kRunUid;
  const RowId run = store.begin_run(row, plan);
  int number = 0;
  const auto finish = [&](AttemptRow attempt) {
    attempt.uid = attempt_uid(++number);
    store.attempt_started(run, attempt.plan_seq, attempt.uid);
    store.heartbeat(attempt.uid);
    store.finish_attempt(run, attempt);
  };
  for (const int seq : {0, 3, 6}) finish(with_everything(seq, 8e-3));
  finish(with_everything(1, 2e-3));
  finish(a_failure(2, Status::timeout, "over 10 s"));
  finish(with_everything(2, 1e-3));  // tried again
  finish(a_failure(4, Status::oom, "needs 242 GiB"));
  AttemptRow wrong = with_everything(5, 1e-4);
  wrong.status = Status::check_failed;
  wrong.detail = "out is wrong";
  wrong.records[0] = a_check(Outcome::falsified);
  finish(wrong);
  finish(a_failure(7, Status::crashed, "signal 11 (Segmentation fault)"));
  finish(a_failure(8, Status::error, "bad alloc"));
  finish(a_failure(9, Status::unsupported, "fp8 is not supported"));
  finish(a_failure(10, Status::aborted, "interrupted"));
  finish(a_failure(11, Status::skipped, "needs 6 GPUs"));
}

void comparisons(Store& store) {
  const StoredRun run = store.find_run(kRunUid).value();
  store.add_pin("baseline", kLawRunUid, "");
  store.add_pin("baseline", kRunUid, "after the holidays");
  ComparisonRow row;
  row.uid = "019ddd00-0002-7000-8000-000000000001";
  row.experiment = "toy";
  row.params = Params{{"size", Value{std::int64_t{64}}}};
  row.side_a_json = R"({"label": "torch", "impl": "torch"})";
  row.side_b_json = R"({"label": "ours", "impl": "ours"})";
  row.value_a = 2e-3;
  row.value_b = 1e-3;
  row.launches = 3;
  row.log_ratio = -0.69;
  row.low = -0.7;
  row.high = -0.68;
  row.p_value = 1e-6;
  row.verdict = "faster";
  for (int launch = 0; launch < 3; ++launch) {
    for (int block = 0; block < 2; ++block) {
      const char* order = block == 0 ? "ABBA" : "BAAB";
      row.blocks.push_back({launch, block, order, {2e-3, 1e-3, 1e-3, 2e-3}, -0.69});
    }
  }
  row.block_count = 6;
  row.attempts = {{'A', 0, attempt_uid(4)}, {'B', 0, attempt_uid(6)}};
  const std::string first = store.add_comparison(run.id, row);
  row.uid = "019ddd00-0002-7000-8000-000000000002";
  row.confirms = first;
  store.add_comparison(run.id, row);
  store.add_sweep_verdicts({{.comparison_uid = first, .tests = 2, .q_value = 2e-6, .verdict = "faster", .reason = ""}});
}

void laws(Store& store) {
  RunRow row = a_run();
  row.uid = kLawRunUid;
  row.verb = "check";
  row.label = "";
  PlanRow mine = a_law(1, "toy.sums_to_one", "me");
  mine.implementation.is_mine = true;
  mine.implementation.path = "kernel.so";
  const RowId run = store.begin_run(row, {a_law(0, "toy.sums_to_one"), mine, a_law(2, "toy.is_even")});
  const auto finish = [&](int seq, Outcome outcome, const std::string& message) {
    AttemptRow attempt;
    attempt.uid = attempt_uid(100 + seq);
    attempt.plan_seq = seq;
    attempt.status = outcome == Outcome::falsified ? Status::check_failed : Status::ok;
    attempt.records = {worker::CheckRecord{.name = "toy.sums_to_one",
                                           .outcome = outcome,
                                           .cases_run = 100,
                                           .shrinks_tried = 12,
                                           .shrinks_taken = 3,
                                           .seed = "18446744073709551615",
                                           .reproduce = "BcuXlNXZz9VdtV3XvBXZ",
                                           .counterexample_json = outcome == Outcome::falsified ? R"({"n":"17"})" : "",
                                           .message = message,
                                           .contract = Contract::full}};
    store.finish_attempt(run, attempt);
  };
  finish(0, Outcome::passed, "");
  finish(1, Outcome::falsified, "row 3 sums to 1.5");
  store.attempt_started(run, 2, attempt_uid(102));  // and was never heard of again
}

}  // namespace

void make_full_database(const fs::path& path) {
  OpenOptions options = default_options();
  options.now = next_time;
  options.writer = {.host = "h", .boot_id = "b", .pid_namespace = "p", .pid = 1, .start_ticks = 1};
  options.key = [] { return Key{}; };
  Store store = Store::open(path, Mode::create, options);
  sweep(store);
  laws(store);
  comparisons(store);
}

}  // namespace syslab::store::test
