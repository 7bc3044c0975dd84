#include "planning/gradient_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "core/error.hpp"
#include "core/text/json.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "planning/planner.hpp"
#include "planning/profiler_trace.hpp"

namespace syslab::parallel {
namespace {

// The planner's tables grow with the square.
constexpr std::size_t kMostGradients = 4000;

struct Unit {
  const char* field;
  double seconds;
};
constexpr Unit kUnits[] = {{"ready_us", 1e-6}, {"ready_ms", 1e-3}, {"ready_s", 1}};

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::usage, fmt::format("{}: {}", where, what));
}

// Bytes, or a step: what a double holds exactly.
std::int64_t whole_number(const std::string& where, const char* field, double value) {
  constexpr double kMost = 0x1p53;
  if (value >= -kMost && value <= kMost && value == std::trunc(value)) return static_cast<std::int64_t>(value);
  fail(where, fmt::format("{} is to be a whole number, found {}", field, value));
}

void expect_sound(const std::string& where, const GradientRecord& record) {
  if (record.bytes < 1) fail(where, fmt::format("gradient '{}' of {} bytes", record.name, record.bytes));
  if (!(record.ready.count() >= 0) || !std::isfinite(record.ready.count())) {
    fail(where, fmt::format("gradient '{}' is final after {} s; times count from the start of the backward pass",
                            record.name, record.ready.count()));
  }
}

// --- CSV -------------------------------------------------------------------------------------------------------------

// Fields between commas; quotes keep commas together and are doubled inside.
std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  for (std::string& field : fields) field = trim(field);
  return fields;
}

double number_of(const std::string& where, const std::string& column, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    fail(where, fmt::format("{} '{}' is no number", column, text));
  }
  return value;
}

std::vector<GradientRecord> read_csv(std::string_view text) {
  std::vector<GradientRecord> records;
  std::istringstream lines{std::string(text)};
  std::vector<std::string> columns;
  const Unit* unit = nullptr;
  const auto column = [&](std::string_view name) {
    const auto at = std::ranges::find(columns, name);
    return at == columns.end() ? std::optional<std::size_t>() : static_cast<std::size_t>(at - columns.begin());
  };
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (trim(line).empty() || line[0] == '#') continue;
    const std::string where = fmt::format("line {} of the trace", number);
    const std::vector<std::string> fields = csv_fields(line);
    if (columns.empty()) {
      columns = fields;
      for (const Unit& one : kUnits) {
        if (column(one.field)) unit = &one;
      }
      if (!column("name") || !column("bytes") || unit == nullptr) {
        fail(where,
             fmt::format("expected names of columns, name, bytes and ready_us (or ready_ms, ready_s) among them, "
                         "found '{}'",
                         line.substr(0, 80)));
      }
      continue;
    }
    if (fields.size() != columns.size()) {
      fail(where, fmt::format("{} fields under {} names", fields.size(), columns.size()));
    }
    GradientRecord record;
    record.name = fields[*column("name")];
    record.bytes = whole_number(where, "bytes", number_of(where, "bytes", fields[*column("bytes")]));
    record.ready = Seconds(unit->seconds * number_of(where, unit->field, fields[*column(unit->field)]));
    if (const auto step = column("step")) {
      record.step = whole_number(where, "step", number_of(where, "step", fields[*step]));
    }
    expect_sound(where, record);
    records.push_back(std::move(record));
  }
  return records;
}

// --- JSON ------------------------------------------------------------------------------------------------------------

std::vector<GradientRecord> read_json(const Json& gradients) {
  std::vector<GradientRecord> records;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Json& one = gradients[i];
    const std::string where = fmt::format("gradient {} of the trace", i);
    const auto number = [&](const char* field) {
      const auto found = one.find(field);
      if (found == one.end() || !found->is_number()) fail(where, fmt::format("'{}' is to be a number", field));
      return found->get<double>();
    };
    if (!one.is_object()) fail(where, "an object with name, bytes and ready_us is wanted");
    const auto unit = std::ranges::find_if(kUnits, [&](const Unit& it) { return one.contains(it.field); });
    if (unit == std::end(kUnits)) fail(where, "has none of ready_us, ready_ms and ready_s");
    GradientRecord record;
    const Json name = one.value("name", Json(fmt::format("gradient {}", i)));
    if (!name.is_string())
      fail(where, fmt::format("'name' is to be a text, found a value of type {}", name.type_name()));
    record.name = name.get<std::string>();
    record.bytes = whole_number(where, "bytes", number("bytes"));
    record.ready = Seconds(unit->seconds * number(unit->field));
    if (one.contains("step")) record.step = whole_number(where, "step", number("step"));
    expect_sound(where, record);
    records.push_back(std::move(record));
  }
  return records;
}

// --- steps into one --------------------------------------------------------------------------------------------------

// Every step must have the same gradients, by name; the time of each is the quantile over the steps.
std::vector<TracedGradient> united(const std::vector<GradientRecord>& records, int& steps) {
  std::map<std::int64_t, std::map<std::string, const GradientRecord*>> by_step;
  for (const GradientRecord& record : records) {
    if (by_step[record.step].emplace(record.name, &record).second) continue;
    throw Error(ErrorKind::usage,
                fmt::format("the trace has two gradients '{}' in step {}: names are to differ, and steps to be told "
                            "apart (a column or field 'step')",
                            record.name, record.step));
  }
  const auto& first = by_step.begin()->second;
  std::vector<const GradientRecord*> order;  // in the first step's order, for gradients that are final together
  for (const GradientRecord& record : records) {
    if (record.step == by_step.begin()->first) order.push_back(&record);
  }
  std::vector<std::vector<Seconds>> times;
  for (const auto& [step, gradients] : by_step) {
    std::vector<Seconds>& row = times.emplace_back();
    for (const GradientRecord* record : order) {
      const std::string& name = record->name;
      const auto found = gradients.find(name);
      if (found == gradients.end() || gradients.size() != first.size() || found->second->bytes != record->bytes) {
        throw Error(ErrorKind::usage,
                    fmt::format("steps {} and {} of the trace do not have the same gradients ('{}'): leave the odd one "
                                "out",
                                by_step.begin()->first, step, name));
      }
      row.push_back(found->second->ready);
    }
  }
  const std::vector<Seconds> ready = ready_quantile(times);
  std::vector<TracedGradient> made;
  for (const GradientRecord* record : order) made.push_back({record->name, record->bytes, ready[made.size()]});
  steps = static_cast<int>(by_step.size());
  return made;
}

}  // namespace

GradientPieces GradientTrace::pieces() const {
  std::vector<Piece> pieces;
  std::int64_t at = 0;
  for (const TracedGradient& gradient : gradients) {
    const std::int64_t elements = (gradient.bytes + 1) / 2;
    pieces.push_back({gradient.name, at, elements});
    at += elements;
  }
  return {std::move(pieces), DType::bf16};
}

std::vector<Seconds> GradientTrace::ready() const {
  std::vector<Seconds> times;
  for (const TracedGradient& gradient : gradients) times.push_back(gradient.ready);
  return times;
}

GradientTrace read_gradient_trace(std::string_view text) {
  GradientTrace trace;
  std::vector<GradientRecord> records;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) throw Error(ErrorKind::usage, "the trace is empty");
  if (text[begin] != '{' && text[begin] != '[') {
    trace.from = "CSV";
    records = read_csv(text);
  } else {
    if (const std::string fault = nesting_fault(text); !fault.empty()) {
      throw Error(ErrorKind::usage, fmt::format("the trace is {}", fault));
    }
    const Json json = parse_events(text);
    if (json.is_discarded()) throw Error(ErrorKind::usage, "the trace begins as JSON and is none: is it whole?");
    const Json* const plain = json.is_object() && json.contains("gradients") ? &json["gradients"] : nullptr;
    const Json* const events = json.is_array()                                    ? &json
                               : json.is_object() && json.contains("traceEvents") ? &json["traceEvents"]
                                                                                  : nullptr;
    if (plain != nullptr && plain->is_array()) {
      trace.from = "JSON";
      records = read_json(*plain);
    } else if (events != nullptr && events->is_array() && !events->empty() && events->front().is_object() &&
               !events->front().contains("ph")) {
      trace.from = "JSON";
      records = read_json(*events);
    } else if (events != nullptr && events->is_array()) {
      records = gradients_of_events(*events, trace.from);
      for (const GradientRecord& record : records) expect_sound("the trace", record);
    } else {
      throw Error(ErrorKind::usage, "the trace is JSON with neither 'gradients' nor 'traceEvents'");
    }
  }
  if (records.empty()) throw Error(ErrorKind::usage, "the trace has no gradient");
  trace.gradients = united(records, trace.steps);
  if (trace.gradients.size() > kMostGradients) {
    throw Error(ErrorKind::usage, fmt::format("the trace has {} gradients in a step, more than the {} that are planned "
                                              "for: are several steps taken for one?",
                                              trace.gradients.size(), kMostGradients));
  }
  std::ranges::stable_sort(trace.gradients, {}, &TracedGradient::ready);
  return trace;
}

}  // namespace syslab::parallel
