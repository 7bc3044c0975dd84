// What the store's tests share: a folder of their own, a small run, and attempts of every kind.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/ids.hpp"
#include "store/store.hpp"

namespace syslab::store::test {

namespace fs = std::filesystem;

// Removed with all it holds. Open to every user, because some tests give up their rights.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "syslab-store-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error(ErrorKind::internal, "mkdtemp failed");
    path_ = name;
    fs::permissions(path_, fs::perms::all);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const char* name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline RunRow a_run() {
  return {.verb = "run",
          .label = "test",
          .argv = {"run", "toy"},
          .protocol_json = R"({"name": "quick"})",
          .root_seed = "18446744073709551615",
          .environment_json = R"({"host": {"name": "h"}, "cpu": {"model": "a cpu"}})",
          .comparability_key = "key",
          .build_json = R"({"git_sha": "abc", "git_dirty": false, "version": "0.1.0"})",
          .rung_facts = {{"toy", "ours", "device", "cpu", ""}, {"toy", "ours", "tile", "96 × 128", "rows × columns"}}};
}

inline PlanRow a_case(int seq, std::int64_t size, const std::string& implementation = "ours",
                      const std::string& role = "") {
  PlanRow row;
  row.seq = seq;
  row.experiment = "toy";
  row.version = "1";
  row.params = Params{{"dtype", Value{std::string("fp32")}}, {"size", Value{size}}};
  row.case_uid = case_uid(row.experiment, row.version, row.params);
  row.implementation = {.name = implementation, .digest = "d-" + implementation, .language = "C++", .role = role};
  row.task = Task::measure;
  row.seed = "18446744073709551614";
  return row;
}

inline PlanRow a_law(int seq, const std::string& law, const std::string& implementation = "ours") {
  PlanRow row = a_case(seq, 1, implementation);
  row.params.set("contract", std::string("full"));
  row.case_uid = case_uid(row.experiment, row.version, row.params);
  row.task = Task::law;
  row.law = law;
  return row;
}

// `size` planned cases of one implementation.
inline std::vector<PlanRow> a_plan(int size) {
  std::vector<PlanRow> plan;
  for (int seq = 0; seq < size; ++seq) plan.push_back(a_case(seq, 100 + seq));
  return plan;
}

inline worker::MetricRecord a_time(double seconds) {
  return {.name = "time", .unit = "s", .value = seconds, .low = 0.9 * seconds, .high = 1.1 * seconds, .n = 20};
}

inline worker::CheckRecord a_check(Outcome outcome = Outcome::passed) {
  return {.name = "reference:out",
          .outcome = outcome,
          .cases_run = 1,
          .seed = "18446744073709551613",
          .worst_error = 1e-7,
          .tolerance = 1e-6};
}

// An attempt that went well: checked, three samples, its time.
inline AttemptRow an_attempt(int plan_seq, double seconds = 1e-3) {
  AttemptRow row;
  row.plan_seq = plan_seq;
  row.facts_json = R"({"stop": "precision"})";
  row.records = {a_check(),
                 worker::SampleRecord{.series = "time", .unit = "s", .values = {seconds, 1.1 * seconds, seconds}},
                 a_time(seconds)};
  return row;
}

inline AttemptRow a_failure(int plan_seq, Status status, const std::string& detail) {
  AttemptRow row;
  row.plan_seq = plan_seq;
  row.status = status;
  row.detail = detail;
  return row;
}

inline std::int64_t count(const Store& store, const std::string& sql) {
  return store.query(sql).rows.at(0).at(0).integer;
}
inline std::string text(const Store& store, const std::string& sql) { return store.query(sql).rows.at(0).at(0).text; }

// The message of the Error that `action` throws; fails the test's expectation by its emptiness when it throws none.
template <typename Action>
std::string error_of(ErrorKind kind, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind() == kind ? error.what() : "wrong kind: " + std::string(error.what());
  }
  return {};
}

}  // namespace syslab::store::test
