#include "runner/verdict.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/units.hpp"

namespace syslab::runner {
namespace {

using worker::Status;

struct Verdict {
  Status status = Status::error;
  std::string detail;
};

// "oom_kill 3" in a file of counters; 0 when there is none.
std::uint64_t counter(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string name;
  for (std::uint64_t value = 0; file >> name >> value;) {
    if (name == key) return value;
  }
  return 0;
}

std::uint64_t peak_rss_bytes(const Ending& ending) {
  return ending.exit ? static_cast<std::uint64_t>(ending.exit->usage.ru_maxrss) * 1024 : 0;
}

// SIGKILL that we did not send: by somebody, or by the kernel for want of memory.
std::string killed_hint(const Ending& ending, const OomWitness& witness) {
  const auto machine =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (witness.struck()) {
    return fmt::format("; the kernel's out-of-memory killer struck meanwhile, the worker held up to {}",
                       format_bytes(peak_rss_bytes(ending)));
  }
  if (peak_rss_bytes(ending) > machine / 2) {
    return fmt::format("; it held up to {}: perhaps the kernel's out-of-memory killer",
                       format_bytes(peak_rss_bytes(ending)));
  }
  return "";
}

Verdict without_end(const Ending& ending, const OomWitness& witness) {
  std::string how = ending.exit->describe();
  const bool by_abort = ending.exit->signalled && ending.exit->code == SIGABRT;
  if (by_abort && ending.stderr_tail.find("std::bad_alloc") != std::string::npos) {
    return {Status::oom, "out of memory in a thread of the case (std::bad_alloc ended the worker)"};
  }
  if (!ending.exit->signalled) how += " without an end record";
  if (ending.exit->signalled && ending.exit->code == SIGKILL) how += killed_hint(ending, witness);
  if (ending.pending_bytes != 0) how += fmt::format(", {} bytes into a record", ending.pending_bytes);
  if (!ending.last_progress.empty()) how += fmt::format("; last seen: {}", ending.last_progress);
  if (!ending.last_lines.empty()) how += fmt::format("; its last lines:\n{}", ending.last_lines);
  return {Status::crashed, how};
}

// The worker's own word, held against its records.
Verdict with_end(const Ending& ending) {
  const worker::EndRecord& end = *ending.end;
  if (end.status != Status::ok) return {end.status, end.detail};
  bool checked = false;
  for (const worker::Record& record : ending.records) {
    const auto* check = std::get_if<worker::CheckRecord>(&record);
    if (check == nullptr) continue;
    if (check->outcome == "falsified" || check->outcome == "error") {
      return {Status::check_failed, fmt::format("check '{}' is {}: {}", check->name, check->outcome, check->message)};
    }
    checked = checked || check->outcome == "passed" || check->outcome == "gave_up";
  }
  if (!checked) return {Status::error, "the case ended without having checked anything"};
  return {Status::ok, end.detail};
}

Verdict decide(const Ending& ending, const RunOptions& options, const OomWitness& witness) {
  if (!ending.not_started.empty()) return {Status::error, ending.not_started};
  if (ending.interrupted != 0) {
    return {Status::aborted, fmt::format("stopped by {}", ending.interrupted == SIGINT ? "SIGINT" : "SIGTERM")};
  }
  if (ending.timed_out) {
    const std::string seen = ending.last_progress.empty() ? "" : "; last seen: " + ending.last_progress;
    return {Status::timeout, fmt::format("stopped after {}{}", format_duration(options.timeout), seen)};
  }
  if (!ending.protocol_error.empty()) return {Status::error, ending.protocol_error};
  return ending.end ? with_end(ending) : without_end(ending, witness);
}

Json facts_of(const Ending& ending) {
  Json facts = Json::object();
  for (const worker::Record& record : ending.records) {
    if (const auto* fact = std::get_if<worker::FactRecord>(&record)) facts.update(Json::parse(fact->json));
  }
  facts["isolation"] = "case";
  if (!ending.exit) return facts;
  facts["exit"] = ending.exit->describe();
  // The worker's own account, where it lived to give one: the kernel's counts our memory before exec into it.
  facts["max_rss_bytes"] = facts.contains("peak_rss_bytes") ? facts["peak_rss_bytes"] : Json(peak_rss_bytes(ending));
  facts.erase("peak_rss_bytes");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  facts["cpu_time_s"] = seconds(ending.exit->usage.ru_utime) + seconds(ending.exit->usage.ru_stime);
  if (!ending.stderr_tail.empty()) facts["stderr_tail"] = ending.stderr_tail;
  return facts;
}

}  // namespace

std::uint64_t OomWitness::kills() {
  return counter("/proc/vmstat", "oom_kill") + counter("/sys/fs/cgroup/memory.events", "oom_kill");
}

void judge(Ending& ending, const RunOptions& options, const OomWitness& witness, AttemptResult& result) {
  Verdict verdict = decide(ending, options, witness);
  result.status = verdict.status;
  result.detail = std::move(verdict.detail);
  result.facts_json = facts_of(ending).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::erase_if(ending.records,
                [](const worker::Record& record) { return std::holds_alternative<worker::FactRecord>(record); });
  result.records = std::move(ending.records);
}

}  // namespace syslab::runner
