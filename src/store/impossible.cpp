#include "store/impossible.hpp"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <nlohmann/json.hpp>

#include "core/ids.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/utc_time.hpp"
#include "store/write.hpp"

namespace syslab::store {
namespace {

constexpr std::size_t kLongestQuote = 80;

struct Times {
  std::string_view what, column;
  std::string_view named_by;  // a column of the row, or what leads to its run
  std::string_view from;      // {0} is the database
};

constexpr std::array kTimes{
    Times{"run", "started_at", "o.uid", "{0}.run o"},
    Times{"pin", "at", "o.name || ' of run ' || o.run_uid", "{0}.pin o"},
    Times{"submission", "at", "o.uid", "{0}.submission o"},
    Times{"comparison", "at", "o.uid || ' of run ' || r.uid",
          "{0}.comparison o LEFT JOIN {0}.run r ON r.id = o.run_id"},
    Times{"attempt_event", "at", "o.status || ' of attempt ' || a.uid || ' of run ' || r.uid",
          "{0}.attempt_event o LEFT JOIN {0}.attempt a ON a.id = o.attempt_id LEFT JOIN {0}.run r ON r.id = a.run_id"},
};

// Each returns the first such row in words; {0} is the database.
constexpr std::array<std::string_view, 6> kImpossible{
    "SELECT printf('attempt %s: ''%.80s'' took %g s', a.uid, m.name, m.value) "
    "FROM {0}.metric m JOIN {0}.attempt a ON a.id = m.attempt_id "
    "WHERE m.unit = 's' AND (m.value < 0 OR m.value = 9e999) LIMIT 1",

    "SELECT printf('attempt %s: ''%.80s'' took %g s', a.uid, t.name, s.value) "
    "FROM {0}.sample s JOIN {0}.series t ON t.id = s.series_id JOIN {0}.attempt a ON a.id = t.attempt_id "
    "WHERE t.unit = 's' AND (s.value < 0 OR s.value = 9e999) LIMIT 1",

    "SELECT printf('attempt %s: ''%.80s'' is %g, outside its interval from %g to %g', a.uid, m.name, m.value, "
    "m.ci_low, "
    "m.ci_high) FROM {0}.metric m JOIN {0}.attempt a ON a.id = m.attempt_id "
    "WHERE m.value < m.ci_low - 1e-9 * abs(m.ci_low) OR m.value > m.ci_high + 1e-9 * abs(m.ci_high) LIMIT 1",

    "SELECT printf('comparison %s: ln(B / A) is %g, outside its interval from %g to %g', c.uid, c.log_ratio, c.ci_low, "
    "c.ci_high) FROM {0}.comparison c WHERE c.log_ratio < c.ci_low - 1e-9 OR c.log_ratio > c.ci_high + 1e-9 LIMIT 1",

    "SELECT printf('check %s: %d tries, and %g of the result was compared', k.uid, k.cases_run, k.fraction_checked) "
    "FROM {0}.check_result k WHERE k.cases_run < 0 OR k.fraction_checked NOT BETWEEN 0 AND 1 LIMIT 1",

    "SELECT printf('attempt %s: ''%.80s'' has %d samples of rank %d, and the case has %d ranks', a.uid, m.name, m.n, "
    "m.rank, p.world_size) FROM {0}.metric m JOIN {0}.attempt a ON a.id = m.attempt_id "
    "JOIN {0}.plan_case p ON p.run_id = a.run_id AND p.seq = a.plan_seq "
    "WHERE m.n < 0 OR m.rank < -1 OR m.rank >= p.world_size LIMIT 1",
};
constexpr std::size_t kLongestFault = 300;

std::string quoted(const std::string& text) { return one_line(cut_to(text, kLongestQuote)); }

// A shared fact's uid is the SHA-256 of what it says.
struct FactCheck {
  std::string_view table, told, columns;
  bool (*holds)(const Statement& row);  // of the uid and those columns
};

constexpr std::array kFactChecks{
    FactCheck{"environment", "environment", "comparability_key, facts",
              [](const Statement& row) { return environment_uid(row.text(1), row.text(2)) == row.text(0); }},
    FactCheck{"build", "build", "facts", [](const Statement& row) { return build_uid(row.text(1)) == row.text(0); }},
    FactCheck{
        "implementation", "implementation", "name, digest, language, is_mine",
        [](const Statement& row) {
          const ImplementationRow said{
              .name = row.text(1), .digest = row.text(2), .language = row.text(3), .is_mine = row.integer(4) != 0};
          return implementation_uid(said) == row.text(0);
        }},
    FactCheck{"case_def", "case", "experiment, version, params", [](const Statement& row) {
                const Params params = Params::from_json(parse_json(row.text(3)));
                // It is of what the text means, so another text of the same has the same one.
                return case_uid(row.text(1), row.text(2), params) == row.text(0) &&
                       repaired_json_text(params.to_json()) == row.text(3);
              }}};

bool holds(const FactCheck& fact, const Statement& row) {
  try {
    return fact.holds(row);
  } catch (const std::exception&) {  // it is no JSON, or these are no parameters
    return false;
  }
}

}  // namespace

std::optional<std::string> impossible_time(Connection& db, std::string_view database) {
  for (const Times& times : kTimes) {
    Statement rows(db, fmt::format("SELECT o.{}, {} FROM {}", times.column, times.named_by,
                                   fmt::format(fmt::runtime(times.from), database)));
    while (rows.step()) {
      if (rows.is_null(0) || utc_from(rows.text(0))) continue;
      return fmt::format("{} {}: {} is '{}'", times.what, one_line(rows.text(1)), times.column, quoted(rows.text(0)));
    }
  }
  return std::nullopt;
}

std::optional<std::string> impossible_value(Connection& db, std::string_view database) {
  for (const std::string_view sql : kImpossible) {
    Statement rows(db, fmt::format(fmt::runtime(sql), database));
    if (rows.step()) return one_line(cut_to(rows.text(0), kLongestFault));
  }
  return std::nullopt;
}

std::vector<std::string> wrong_facts(Connection& db, std::string_view database, std::size_t at_most) {
  std::vector<std::string> wrong;
  for (const FactCheck& fact : kFactChecks) {
    Statement rows(db, fmt::format("SELECT uid, {} FROM {}.{}", fact.columns, database, fact.table));
    for (std::size_t found = 0; found < at_most && rows.step();) {
      if (holds(fact, rows)) continue;
      wrong.push_back(fmt::format("{} {}", fact.told, rows.text(0)));
      ++found;
    }
  }
  return wrong;
}

}  // namespace syslab::store
