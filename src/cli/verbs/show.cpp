#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/table.hpp"
#include "session/selection.hpp"
#include "session/stored_case.hpp"
#include "session/stored_run.hpp"
#include "store/cells.hpp"

namespace syslab::cli {
namespace {

// A kind of stored thing: where its uid stands, what is told of it, and what belongs to it.
struct Kind {
  const char *name, *table, *facts, *parts_name, *parts;
};

constexpr int kNames = 14;  // columns of a terminal

constexpr std::array<Kind, 4> kKinds{{
    {"run", "run",
     "SELECT run_uid AS run, verb, label, started_at, argv, protocol, root_seed, host, cpu_model, gpu_name, "
     "tool_version, "
     "git_sha, planned, ok, not_asked, oom, failed, missing, "
     "(SELECT min(a.measured_here) FROM v_attempt a WHERE a.run_uid = ?1) AS measured_here FROM v_run "
     "WHERE run_uid = ?1",
     "attempts",
     "SELECT attempt_uid AS attempt, experiment, implementation, coalesce(law, case_text) AS \"case\", status, "
     "message, "
     "iif(law IS NULL, params, NULL) AS params FROM v_attempt WHERE run_uid = ?1 ORDER BY plan_seq, attempt_uid"},
    {"attempt", "attempt",
     "SELECT attempt_uid AS attempt, run_uid AS run, experiment, implementation, case_text AS \"case\", law, "
     "world_size, "
     "seed, protocol, status, message, checked, started_at, ended_at, measured_here, params FROM v_attempt "
     "WHERE attempt_uid = ?1",
     "metrics",
     "SELECT metric, rank, value, unit, ci_low, ci_high, n, note FROM v_result "
     "WHERE attempt_uid = ?1 AND metric IS NOT NULL ORDER BY metric, rank"},
    {"check", "check_result",
     "SELECT k.uid AS \"check\", t.run_uid AS run, t.attempt_uid AS attempt, t.experiment, t.implementation, "
     "t.case_text AS \"case\", k.name, k.contract, k.outcome, k.worst_error, k.tolerance, k.message, k.counterexample, "
     "t.seed, t.params FROM check_result k JOIN v_attempt t ON t.attempt_id = k.attempt_id WHERE k.uid = ?1",
     "", ""},
    {"comparison", "comparison",
     "SELECT comparison_uid AS comparison, run_uid AS run, at, experiment, case_text AS \"case\", metric, unit, "
     "rate_unit, label_a, label_b, value_a, value_b, change, change_low, change_high, delta, launches, blocks, "
     "verdict, reason, measured_here, params "
     "FROM v_comparison WHERE comparison_uid = ?1",
     "attempts",
     "SELECT x.side, x.launch, a.uid AS attempt FROM comparison_attempt x JOIN attempt a ON a.id = x.attempt_id "
     "JOIN comparison c ON c.id = x.comparison_id WHERE c.uid = ?1 ORDER BY x.launch, x.side"},
}};

using store::text_cell;

struct Found {
  const Kind* kind;
  std::string uid;
};

// Like resolve_uid() of the store, over all kinds.
std::vector<Found> find_all(const store::Store& store, const std::string& part) {
  std::vector<Found> found;
  for (const Kind& kind : kKinds) {
    const std::string sql = fmt::format(
        "SELECT uid FROM {} WHERE substr(uid, 1, length(?1)) = lower(?1) OR (length(?1) <= 12 AND "
        "substr(uid, -12, length(?1)) = lower(?1)) OR (length(?1) >= 4 AND substr(uid, -length(?1)) = lower(?1)) LIMIT "
        "9",
        kind.table);
    for (const auto& row : store.query(sql, {text_cell(part)}).rows) found.push_back({&kind, row[0].text});
  }
  return found;
}

Found find_one(const store::Store& store, const std::string& asked) {
  const bool like_a_uid = !asked.empty() && asked.find_first_not_of("0123456789abcdefABCDEF-") == std::string::npos;
  if (!like_a_uid) return {kKinds.data(), find_run_or_pin(store, asked).uid};
  const std::vector<Found> found = find_all(store, asked);
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("no run, attempt, check or comparison '{}' in this database; `syslab log` "
                            "shows runs",
                            asked));
  }
  std::string message = fmt::format("'{}' names several; give more of the uid:", asked);
  for (const Found& one : found) message += fmt::format("\n  {} {}", one.kind->name, one.uid);
  throw Error(ErrorKind::usage, message);
}

Json json_of(const store::Cell& cell) {
  switch (cell.type) {
    case store::Cell::Type::integer:
      return cell.integer;
    case store::Cell::Type::real:
      return cell.real;
    case store::Cell::Type::text:
      return cell.text;
    case store::Cell::Type::null:
      break;
  }
  return nullptr;
}

std::string text_of(const store::Cell& cell) {
  if (cell.type == store::Cell::Type::real) return fmt::format("{:.6g}", cell.real);
  const Json json = json_of(cell);
  return json.is_null() ? "-" : json.is_string() ? printable(cell.text) : printable(json_text(json));
}

Json rows_of(const store::ResultSet& result) {
  Json rows = Json::array();
  for (const auto& row : result.rows) {
    Json one = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i) one[result.columns[i]] = json_of(row[i]);
    rows.push_back(one);
  }
  return rows;
}

// Of a comparison of programs that print a rate its values, by the columns that hold those of the time of one unit.
std::map<std::string, double> rates_of(const store::ResultSet& facts) {
  std::map<std::string, double> rates;
  const auto seconds = [&](std::string_view column) -> const store::Cell& { return report::cell_of(facts, 0, column); };
  if (seconds("rate_unit").type != store::Cell::Type::text) return rates;
  for (const char* name : {"value_a", "value_b"}) {
    if (seconds(name).type == store::Cell::Type::real) rates[name] = 1 / seconds(name).real;
  }
  // The longest time is the lowest rate.
  for (const auto& [name, from] :
       {std::pair{"change", "change"}, {"change_low", "change_high"}, {"change_high", "change_low"}}) {
    if (seconds(from).type == store::Cell::Type::real) rates[name] = 1 / (1 + seconds(from).real) - 1;
  }
  return rates;
}

// As people read them: metric, unit, values and change are those of the rate.
void show_rates(store::ResultSet& facts) {
  const std::map<std::string, double> rates = rates_of(facts);
  auto& row = facts.rows.at(0);
  store::Cell& unit = row.at(*report::find_column(facts, "rate_unit"));
  if (unit.type == store::Cell::Type::null) return;
  row.at(*report::find_column(facts, "metric")) = text_cell("rate");
  row.at(*report::find_column(facts, "unit")) = std::exchange(unit, {});
  for (const auto& [column, rate] : rates) row.at(*report::find_column(facts, column)) = store::real_cell(rate);
}

// The last column, `params`, is there to say in words what a function's case is called (session/selection.hpp).
void name_cases(store::ResultSet& result, bool in_words) {
  if (result.columns.empty() || result.columns.back() != "params") return;
  const auto place = [&](const char* name) { return std::ranges::find(result.columns, name) - result.columns.begin(); };
  const auto experiment = place("experiment"), title = place("case");
  for (auto& row : result.rows) {
    if (in_words && row.back().type == store::Cell::Type::text) {
      row[title].text = case_words(row[experiment].text, row.back().text, row[title].text);
    }
    row.pop_back();
  }
  result.columns.pop_back();
}

}  // namespace

Exit execute(const Context& context, const ShowOptions& options) {
  require_database(context);
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  if (options.uid == "latest") warn_of_future_runs(context, store);
  const auto [kind, uid] = find_one(store, options.uid);
  store::ResultSet facts = store.query(kind->facts, {text_cell(uid)});
  store::ResultSet parts;
  if (*kind->parts != '\0') parts = store.query(kind->parts, {text_cell(uid)});
  name_cases(facts, !context.console.json());
  name_cases(parts, !context.console.json());
  if (context.console.json()) {
    Json document{{"kind", kind->name}, {kind->name, rows_of(facts).at(0)}};
    for (const auto& [column, rate] : rates_of(facts)) {
      document[kind->name][column.starts_with("value") ? "rate" + column.substr(5) : "rate_" + column] = rate;
    }
    if (*kind->parts != '\0') document[kind->parts_name] = rows_of(parts);
    context.console.print_document(document);
    return Exit::well;
  }
  if (report::find_column(facts, "rate_unit")) show_rates(facts);
  std::string text;
  const auto& row = facts.rows.at(0);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string value = text_of(row[i]);
    // Further lines of a value stand below its first: none passes for a value of its own.
    const std::string below = "\n" + std::string(kNames + 1, ' ');
    if (value != "-" && !value.empty()) {
      text += fmt::format("{:<{}} {}\n", facts.columns[i], kNames, fmt::join(split(value, '\n'), below));
    }
  }
  if (!parts.rows.empty()) {
    std::vector<report::Column> header;
    std::vector<std::vector<std::string>> cells;
    for (const std::string& column : parts.columns) header.push_back({column, "1", "s", "left"});
    for (const auto& part : parts.rows) {
      std::vector<std::string>& line = cells.emplace_back();
      for (const store::Cell& cell : part) {
        line.push_back(text_of(cell));
        std::ranges::replace(line.back(), '\n', ' ');
      }
    }
    text += "\n" + report::write_aligned(header, cells);
  }
  context.console.print(text);
  return Exit::well;
}

}  // namespace syslab::cli
