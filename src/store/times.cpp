#include "store/times.hpp"

#include <fmt/format.h>

#include <array>

#include "core/printable.hpp"
#include "core/utc_time.hpp"

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

std::string quoted(const std::string& text) { return one_line(cut_to(text, kLongestQuote)); }

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

std::optional<std::string> impossible_duration(Connection& db, std::string_view database) {
  Statement rows(
      db, fmt::format("SELECT a.uid, m.value, m.name FROM {0}.metric m JOIN {0}.attempt a ON a.id = m.attempt_id "
                      "WHERE m.unit = 's' AND (m.value < 0 OR m.value = 9e999) UNION ALL "
                      "SELECT a.uid, s.value, t.name FROM {0}.sample s JOIN {0}.series t ON t.id = s.series_id "
                      "JOIN {0}.attempt a ON a.id = t.attempt_id "
                      "WHERE t.unit = 's' AND (s.value < 0 OR s.value = 9e999) LIMIT 1",
                      database));
  if (!rows.step()) return std::nullopt;
  return fmt::format("attempt {}: '{}' took {} s", one_line(rows.text(0)), quoted(rows.text(2)), rows.real(1));
}

}  // namespace syslab::store
