#include "runner/verdict.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/units.hpp"
#include "runner/slowest.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::runner {
namespace {

constexpr std::size_t kLongestDetail = 64U << 10;

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

// A SIGKILL that we did not send: from a person, or from the kernel for lack of memory.
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
  if (!ending.exit->signalled && ending.exit->code == worker::kOutOfMemoryExit) {
    return {Status::oom, "out of memory in a thread of the case (std::bad_alloc ended the worker)"};
  }
  if (!ending.exit->signalled && ending.exit->lost.empty()) how += " without an end record";
  if (ending.exit->signalled && ending.exit->code == SIGKILL) how += killed_hint(ending, witness);
  if (ending.pending_bytes != 0) how += fmt::format(", {} bytes into a record", ending.pending_bytes);
  if (!ending.last_progress.empty()) how += fmt::format("; last seen: {}", ending.last_progress);
  if (!ending.last_lines.empty()) how += fmt::format("; its last lines:\n{}", ending.last_lines);
  return {Status::crashed, how};
}

std::string_view name_of_signal(int number) {
  switch (number) {
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP: its terminal was closed";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "SIGTERM";
  }
}

Verdict decide(const Ending& ending, const MeasureSpec& spec, const OomWitness& witness) {
  if (!ending.not_started.empty()) return {Status::error, ending.not_started};
  if (ending.interrupted != 0) {
    return {Status::aborted, fmt::format("stopped by {}", name_of_signal(ending.interrupted))};
  }
  if (ending.timed_out) {
    const std::string seen = ending.last_progress.empty() ? "" : "; last seen: " + ending.last_progress;
    return {Status::timeout, fmt::format("stopped after {}{}", format_duration(spec.timeout), seen)};
  }
  if (ending.is_restless) {
    return {Status::error,
            "it ran in the other side's turns, although it was stopped for them; expected it to stand still, since "
            "otherwise neither time is valid; try: a quiet machine (a busy one may stop a process late)"};
  }
  if (!ending.wire_error.empty()) return {Status::error, ending.wire_error};
  if (!ending.end) return without_end(ending, witness);
  if (ending.one_of_ranks) return {ending.end->status, ending.end->detail};
  const worker::EndRecord end = believed(*ending.end, ending.records);
  return {end.status, end.detail};
}

// If the process had other cases before, the kernel's account at its exit is not this case's. Then the worker's own
// account is used, if it lived to send one. The kernel also counts our memory before exec into the worker's.
Json facts_of(const Ending& ending) {
  Json facts = Json::object();
  for (const worker::Record& record : ending.records) {
    if (const auto* fact = std::get_if<worker::FactRecord>(&record)) facts.update(parse_json(fact->json));
  }
  const auto take = [&facts](const char* name) {
    const auto found = facts.find(name);
    Json value = found == facts.end() ? Json() : *found;
    facts.erase(name);
    return value;
  };
  Json peak_rss = take("peak_rss_bytes"), cpu_time = take("case_cpu_time_s");
  facts["isolation"] = to_string(ending.shared ? Isolation::reuse : Isolation::per_case);
  if (ending.worker > 0) facts["worker"] = ending.worker;
  if (!ending.host.empty()) facts["host"] = ending.host;
  if (ending.shared) facts["worker_cases_before"] = ending.cases_before;
  if (ending.exit) facts["exit"] = ending.exit->describe();
  if (ending.exit && ending.exit->lost.empty() && ending.cases_before == 0) {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    cpu_time = seconds(ending.exit->usage.ru_utime) + seconds(ending.exit->usage.ru_stime);
    if (peak_rss.is_null()) peak_rss = peak_rss_bytes(ending);
  }
  if (!peak_rss.is_null()) facts["max_rss_bytes"] = peak_rss;
  if (!cpu_time.is_null()) facts["cpu_time_s"] = cpu_time;
  if (!ending.stderr_tail.empty()) facts["stderr_tail"] = ending.stderr_tail;
  return facts;
}

// A process that has had other cases still holds some of their memory.
void note_shared_memory(Ending& ending) {
  if (ending.cases_before == 0) return;
  for (worker::Record& record : ending.records) {
    auto* metric = std::get_if<worker::MetricRecord>(&record);
    if (metric == nullptr || metric->name != "max_rss_bytes" || !metric->note.empty()) continue;
    metric->note = fmt::format("of a process that had {} {} before", ending.cases_before,
                               ending.cases_before == 1 ? "case" : "cases");
  }
}

}  // namespace

worker::EndRecord believed(const worker::EndRecord& end, std::span<const worker::Record> records) {
  if (end.status != Status::ok) return end;
  bool checked = false;
  for (const worker::Record& record : records) {
    const auto* check = std::get_if<worker::CheckRecord>(&record);
    if (check == nullptr) continue;
    if (check->outcome == Outcome::falsified || check->outcome == Outcome::error) {
      return {Status::check_failed,
              fmt::format("check '{}' is {}: {}", check->name, to_string(check->outcome), check->message)};
    }
    checked = checked || check->outcome == Outcome::passed || check->outcome == Outcome::gave_up;
  }
  if (!checked) return {Status::error, "the case ended without having checked anything"};
  return end;
}

std::uint64_t OomWitness::kills() {
  return counter("/proc/vmstat", "oom_kill") + counter("/sys/fs/cgroup/memory.events", "oom_kill");
}

Launch judge(Ending& ending, const MeasureSpec& spec, const OomWitness& witness) {
  Launch launch;
  Verdict verdict = decide(ending, spec, witness);
  launch.status = verdict.status;
  launch.detail = cut_to(printable(verdict.detail), kLongestDetail);  // it may quote what a worker wrote
  launch.facts_json = repaired_json_text(facts_of(ending));
  note_shared_memory(ending);
  std::erase_if(ending.records,
                [](const worker::Record& record) { return std::holds_alternative<worker::FactRecord>(record); });
  launch.records = std::move(ending.records);
  // Of a worker that speaks for several ranks, since it has started them; for one rank there are none.
  for (worker::MetricRecord& metric : metrics_of_all_ranks(launch.records)) {
    launch.records.emplace_back(std::move(metric));
  }
  return launch;
}

}  // namespace syslab::runner
