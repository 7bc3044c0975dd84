#include "session/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "measure/device.hpp"
#include "measure/protocol.hpp"
#include "runner/environment.hpp"
#include "session/this_machine.hpp"
#include "store/cells.hpp"

namespace syslab::cli {
namespace {

// The newest 20,000 attempts are enough and take milliseconds.
constexpr const char* kNewest = "(SELECT id, run_id, plan_seq FROM attempt ORDER BY id DESC LIMIT 20000)";

using store::text_cell;

std::string age_of(double days) {
  const auto ago = [](double count, const char* unit) {
    return fmt::format("{:.0f} {}{} ago", std::floor(count), unit, std::floor(count) == 1 ? "" : "s");
  };
  if (days >= 1) return ago(days, "day");
  if (days * 24 >= 1) return ago(days * 24, "hour");
  if (days * 1440 >= 1) return ago(days * 1440, "minute");
  return "just now";
}

// Durations of the same cases on the same kind of machine, of each the newest: under the same protocol, for which an
// attempt of several launches takes that much longer, or of a law, which knows no protocol, by its number of tries
// (what a law took that was searched until some time tells nothing).
// Imported times are another program's, and need not be of whole attempts.
void take_durations(const store::Store& store, const Conditions& conditions, const std::string& machine,
                    plan::Basis& basis) {
  const store::ResultSet found = store.query(
      fmt::format("SELECT c.uid, i.name, coalesce(p.law, ''), (julianday(e.at) - julianday(s.at)) * 86400.0,"
                  "       julianday('now') - julianday(e.at),"
                  "       p.task = 'law',"
                  "       CASE p.task WHEN 'law' THEN coalesce(r.protocol ->> '$.law_cases', 0)"
                  "                   ELSE coalesce(r.protocol ->> '$.launches', 1) END,"
                  "       p.world_size"
                  "  FROM {} a"
                  "  JOIN run r ON r.id = a.run_id AND r.verb <> 'import'"
                  "  JOIN environment v ON v.id = r.environment_id AND v.comparability_key = ?2"
                  "  JOIN plan_case p ON p.run_id = a.run_id AND p.seq = a.plan_seq"
                  "                  AND (p.task = 'law' AND r.protocol ->> '$.until_ns' IS NULL"
                  "                       OR p.task <> 'law' AND r.protocol ->> '$.name' = ?1)"
                  "  JOIN case_def c ON c.id = p.case_id"
                  "  JOIN implementation i ON i.id = p.implementation_id"
                  "  JOIN attempt_event s ON s.attempt_id = a.id AND s.status = 'started'"
                  "  JOIN attempt_event e ON e.attempt_id = a.id AND e.status = 'ok'"
                  " ORDER BY a.id",
                  kNewest),
      {text_cell(conditions.protocol), text_cell(machine)});
  for (const auto& row : found.rows) {
    if (row[3].type != store::Cell::Type::real) continue;
    const int wanted = row[5].integer != 0 ? conditions.law_cases : conditions.launches;
    const double times = row[6].integer <= 0 ? 1 : double(wanted) / double(row[6].integer);
    basis.measured[plan::duration_key(row[0].text, row[1].text, row[7].integer, row[2].text)] = {
        Seconds(row[3].real * times), age_of(row[4].real)};
  }
}

// The device that one of our implementations runs on; null for others.
const DeviceKind* stored_device_of(const std::string& experiment, const std::string& implementation) {
  for (const registry::Experiment& one : registry::Registry::global().experiments()) {
    if (one.id != experiment) continue;
    const registry::Implementation* known = one.find_implementation(implementation);
    return known == nullptr ? nullptr : &known->device;
  }
  return nullptr;
}

// Rates are stored as TFLOP/s and GB/s.
void take_rates(const store::Store& store, const std::string& machine, plan::Basis& basis) {
  const store::ResultSet found =
      store.query(fmt::format("SELECT c.experiment, i.name, m.name, avg(m.value), max(m.value)"
                              "  FROM {} a"
                              "  JOIN run r ON r.id = a.run_id"
                              "  JOIN environment v ON v.id = r.environment_id AND v.comparability_key = ?1"
                              "  JOIN metric m ON m.attempt_id = a.id AND m.rank = 0 AND m.value > 0"
                              "   AND (m.name = 'tflops' AND m.unit = 'TFLOP/s' OR m.name = 'gbps' AND m.unit = 'GB/s')"
                              "  JOIN plan_case p ON p.run_id = a.run_id AND p.seq = a.plan_seq"
                              "  JOIN case_def c ON c.id = p.case_id"
                              "  JOIN implementation i ON i.id = p.implementation_id"
                              " GROUP BY 1, 2, 3",
                              kNewest),
                  {text_cell(machine)});
  for (const auto& row : found.rows) {
    const bool compute = row[2].text == "tflops";
    const double scale = compute ? 1e12 : 1e9;
    plan::Rates& own = basis.own[plan::rate_key(row[0].text, row[1].text)];
    (compute ? own.flops : own.bytes) = scale * row[3].real;
    const DeviceKind* device = stored_device_of(row[0].text, row[1].text);
    if (device == nullptr) continue;  // somebody's, wherever it ran
    plan::Rates& known = *device == DeviceKind::cuda ? basis.gpu.best : basis.cpu.best;
    double& best = compute ? known.flops : known.bytes;
    best = std::max(best, scale * row[4].real);
  }
}

// Caches are taken to be filled by as many input sets as it takes, or by a flush that the protocol itself asks for.
plan::Course course_of(const measure::Protocol& protocol, std::uint64_t last_level_cache) {
  const double twice_the_cache = 2.0 * static_cast<double>(last_level_cache);
  const double flushed = protocol.flush_bytes > 0 ? static_cast<double>(protocol.flush_bytes) : twice_the_cache;
  return {.warmup_calls = protocol.warmup_calls,
          .min_samples = protocol.min_samples,
          .max_samples = protocol.max_samples,
          .estimate_calls = protocol.estimate_calls,
          .warmup_time = protocol.warmup_time,
          .sample_floor = protocol.sample_floor,
          .warmup_limit = protocol.warmup_limit,
          .device_budget = protocol.device_budget,
          .wall_budget = protocol.wall_budget,
          .repeat_time = protocol.repeat_time,
          .verify_share = protocol.verify_share,
          .rotated_bytes = protocol.cache == measure::Cache::rotate ? twice_the_cache : 0,
          .flushed_bytes = protocol.cache == measure::Cache::flush ? flushed : 0};
}

void take_host_memory(const Conditions& conditions, plan::DeviceBasis& cpu) {
  cpu.memory_bytes = physical_memory_bytes();
  cpu.memory_of = "this machine has " + plan::short_size(static_cast<double>(cpu.memory_bytes));
  if (const auto limit = control_group_limit(); limit && *limit < cpu.memory_bytes) {
    cpu.memory_bytes = *limit;
    cpu.memory_of = "this job or container has " + plan::short_size(static_cast<double>(*limit));
  }
  if (const std::uint64_t limit = conditions.memory_limit_bytes; limit > 0 && limit < cpu.memory_bytes) {
    cpu.memory_bytes = limit;
    cpu.memory_of = "--memory-limit is " + plan::short_size(static_cast<double>(limit));
  }
}

// Assumptions about a GPU before anything was measured on it: its memory's rate by clock and width, half of which most
// kernels reach.
void take_gpu(const plan::Machine& machine, const Conditions& conditions, plan::DeviceBasis& gpu) {
  if (machine.gpu_bytes_per_s > 0) gpu.assumed.bytes = machine.gpu_bytes_per_s / 2;
  if (conditions.try_oom || machine.gpu_memory_bytes == 0) return;
  gpu.memory_bytes = machine.gpu_memory_bytes;
  gpu.memory_of =
      fmt::format("{} has {}", machine.gpu, plan::short_size(static_cast<double>(machine.gpu_memory_bytes)));
  if (const std::uint64_t limit = conditions.memory_limit_bytes; limit > 0 && limit < gpu.memory_bytes) {
    gpu.memory_bytes = limit;
    gpu.memory_of = "--memory-limit is " + plan::short_size(static_cast<double>(limit));
  }
}

}  // namespace

void forecast(plan::Plan& plan, const store::Store* store, const Conditions& conditions) {
  constexpr std::uint64_t kUsualGpuCache = 50 << 20;  // of those that this is for
  plan::Basis basis;
  const measure::Protocol protocol = measure::find_protocol(conditions.protocol);
  basis.cpu.course = course_of(protocol, measure::host_last_level_cache());
  basis.gpu.course = course_of(protocol, kUsualGpuCache);
  basis.launches = conditions.launches;
  if (!conditions.try_oom) take_host_memory(conditions, basis.cpu);
  take_gpu(plan.machine, conditions, basis.gpu);
  if (store != nullptr) {
    const std::string machine = runner::comparability_key(runner::environment_facts());
    take_durations(*store, conditions, machine, basis);
    take_rates(*store, machine, basis);
  }
  plan::predict(plan, basis);
}

}  // namespace syslab::cli
