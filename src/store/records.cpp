#include "store/records.hpp"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "core/files/hash.hpp"
#include "core/ids.hpp"
#include "core/text/json_text.hpp"
#include "store/reservoir.hpp"
#include "store/write.hpp"

namespace syslab::store {
namespace {

// A fixed seed from an attempt and a series, so that the same attempt written again keeps the same samples.
std::uint64_t reservoir_seed(const std::string& attempt_uid, const std::string& series) {
  return std::stoull(sha256_hex(attempt_uid + "/" + series).substr(0, 16), nullptr, 16);
}

// --- samples --------------------------------------------------------------------------------------------------------

struct Series {
  std::vector<const worker::SampleRecord*> parts;
  std::int64_t size = 0;
};
using SeriesMap = std::map<std::pair<std::string, std::string>, Series>;  // (name, unit)

void write_part(Statement& insert, RowId series, const worker::SampleRecord& part, std::size_t i) {
  const std::int64_t flags = i < part.flags.size() ? part.flags[i] : 0;
  insert.run(series, part.launch, part.rank, part.first_index + static_cast<std::int64_t>(i), part.values[i], flags);
}

void write_series(Connection& db, RowId attempt, const std::string& attempt_uid, const SeriesMap::value_type& entry,
                  std::int64_t quota) {
  const auto& [name, unit] = entry.first;
  const Series& series = entry.second;
  db.cached("INSERT INTO series (attempt_id, name, unit) VALUES (?, ?, ?)").run(attempt, name, unit);
  const RowId id = db.last_insert_rowid();
  // If a worker sends one place twice, the first value stays: samples are never replaced.
  Statement& insert = db.cached(
      "INSERT INTO sample (series_id, launch, rank, idx, value, flags) VALUES (?, ?, ?, ?, ?, ?) "
      "ON CONFLICT DO NOTHING");
  if (quota == series.size) {
    for (const worker::SampleRecord* part : series.parts) {
      for (std::size_t i = 0; i < part->values.size(); ++i) write_part(insert, id, *part, i);
    }
    return;
  }
  auto part = series.parts.begin();
  std::int64_t part_begins = 0;  // position of its first sample in the series
  for (const std::int64_t position : choose_indices(series.size, quota, reservoir_seed(attempt_uid, name))) {
    while (position - part_begins >= static_cast<std::int64_t>((*part)->values.size())) {
      part_begins += static_cast<std::int64_t>((*part)->values.size());
      ++part;
    }
    write_part(insert, id, **part, static_cast<std::size_t>(position - part_begins));
  }
}

void write_samples(Connection& db, RowId attempt, const std::string& attempt_uid, const SeriesMap& all, Json& facts) {
  std::vector<std::int64_t> sizes;
  std::int64_t taken = 0;
  for (const auto& [key, series] : all) {
    sizes.push_back(series.size);
    taken += series.size;
  }
  const std::vector<std::int64_t> quotas = sample_quotas(sizes, kMaxSamplesPerAttempt);
  std::size_t i = 0;
  for (const auto& entry : all) {
    const std::int64_t quota = quotas[i++];
    write_series(db, attempt, attempt_uid, entry, quota);
    if (quota < entry.second.size) {
      facts["sample_reservoir"][entry.first.first] = {{"taken", entry.second.size}, {"kept", quota}};
    }
  }
  if (taken > kMaxSamplesPerAttempt) facts["samples_taken"] = taken;
}

// --- the others -----------------------------------------------------------------------------------------------------

// The reason why a metric has no value, or, if it has one, its worker's note.
std::optional<std::string> note_of(const worker::MetricRecord& metric) {
  std::optional<std::string> note = unless_empty(metric.note);
  if (!metric.value) return note ? note : "no value, and the worker gave no reason";
  if (std::isnan(*metric.value)) return note ? "not a number; " + *note : "not a number";
  return note;
}

void write_metric(Connection& db, RowId attempt, const worker::MetricRecord& metric) {
  db.cached(
        "INSERT INTO metric (attempt_id, name, rank, unit, value, ci_low, ci_high, n, note) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(attempt, metric.name, metric.rank, metric.unit, metric.value, metric.low, metric.high, metric.n,
           note_of(metric));  // a NaN binds as NULL
}

// The last of several metrics of one name and rank counts; the facts name those that came more than once.
void write_metrics(Connection& db, RowId attempt, std::span<const worker::Record> records, Json& facts) {
  std::set<std::pair<std::string_view, int>> written;
  std::set<std::string> repeated;
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    const auto* metric = std::get_if<worker::MetricRecord>(&*record);
    if (metric == nullptr) continue;
    if (written.emplace(metric->name, metric->rank).second) {
      write_metric(db, attempt, *metric);
    } else {
      repeated.insert(metric->name);
    }
  }
  if (!repeated.empty()) facts["metrics_given_twice"] = repeated;
}

// A counterexample from a foreign worker that is not JSON is kept as a JSON text rather than lost.
std::optional<std::string> as_json(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (Json::accept(text)) return text;
  return repaired_json_text(Json(text));
}

void write_check(Connection& db, RowId attempt, const worker::CheckRecord& check) {
  const Finding& found = check.finding;
  db.cached(
        "INSERT INTO check_result (uid, attempt_id, name, contract, outcome, cases_run, shrinks_tried, "
        "shrinks_taken, seed, reproduce, counterexample, message, worst_error, tolerance, fraction_checked, finding, "
        "promised, seldom, about, cause, input, first_wrong, never_drawn, small) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(new_uuid7(), attempt, check.name,
           check.contract ? std::optional(std::string(to_string(*check.contract))) : std::nullopt,
           to_string(check.outcome), check.cases_run, check.shrinks_tried, check.shrinks_taken, check.seed,
           unless_empty(check.reproduce), as_json(check.counterexample_json), unless_empty(check.message),
           check.worst_error, check.tolerance, check.fraction_checked,
           found.kind == FindingKind::none ? std::nullopt : std::optional(std::string(to_string(found.kind))),
           static_cast<std::int64_t>(found.promised), static_cast<std::int64_t>(found.seldom),
           unless_empty(found.about), unless_empty(found.cause), unless_empty(found.input),
           unless_empty(found.first_wrong), unless_empty(found.never_drawn), static_cast<std::int64_t>(found.small));
}

void write_artifact(Connection& db, RowId attempt, const worker::ArtifactRecord& artifact) {
  Statement& insert = db.cached(
      "INSERT INTO artifact (uid, attempt_id, kind, media_type, sha256, bytes, content) VALUES (?, ?, ?, ?, ?, ?, ?)");
  insert.with(new_uuid7(), attempt, artifact.kind, artifact.media_type, sha256_hex(artifact.content),
              static_cast<std::int64_t>(artifact.content.size()));
  insert.bind_blob(7, artifact.content);
  insert.step();
  insert.reset();
}

void write_memory_event(Connection& db, RowId attempt, const worker::MemoryEventRecord& event, std::int64_t seq) {
  db.cached(
        "INSERT INTO mem_event (attempt_id, rank, seq, t_ns, delta_bytes, tag, category) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)")
      .run(attempt, event.rank, seq, event.t_ns, event.delta_bytes, event.tag, event.category);
}

// A kernel that is reported twice keeps its first record, as samples do.
void write_kernel_stat(Connection& db, RowId attempt, const worker::KernelStatRecord& stat) {
  db.cached(
        "INSERT INTO kernel_stat (attempt_id, rank, phase, kernel, calls, total_ns, min_ns, max_ns) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING")
      .run(attempt, stat.rank, stat.phase, stat.kernel, stat.calls, stat.total_ns, stat.min_ns, stat.max_ns);
}

void write_span(Connection& db, RowId attempt, const worker::SpanRecord& span, std::int64_t seq) {
  db.cached(
        "INSERT INTO span (attempt_id, rank, seq, track, name, category, start_ns, end_ns) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
      .run(attempt, span.rank, seq, span.track, span.name, span.category, span.start_ns, span.end_ns);
}

}  // namespace

void write_records(Connection& db, RowId attempt, const std::string& attempt_uid,
                   std::span<const worker::Record> records, Json& facts) {
  SeriesMap samples;
  std::map<int, std::int64_t> memory_events, spans;  // so far, by rank
  for (const worker::Record& record : records) {
    if (const auto* part = std::get_if<worker::SampleRecord>(&record)) {
      Series& series = samples[{part->series, part->unit}];
      series.parts.push_back(part);
      series.size += static_cast<std::int64_t>(part->values.size());
    } else if (const auto* check = std::get_if<worker::CheckRecord>(&record)) {
      write_check(db, attempt, *check);
    } else if (const auto* artifact = std::get_if<worker::ArtifactRecord>(&record)) {
      write_artifact(db, attempt, *artifact);
    } else if (const auto* event = std::get_if<worker::MemoryEventRecord>(&record)) {
      write_memory_event(db, attempt, *event, memory_events[event->rank]++);
    } else if (const auto* stat = std::get_if<worker::KernelStatRecord>(&record)) {
      write_kernel_stat(db, attempt, *stat);
    } else if (const auto* span = std::get_if<worker::SpanRecord>(&record)) {
      write_span(db, attempt, *span, spans[span->rank]++);
    }
  }
  write_metrics(db, attempt, records, facts);
  write_samples(db, attempt, attempt_uid, samples, facts);
}

}  // namespace syslab::store
