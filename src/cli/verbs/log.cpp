#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/log_series.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/table.hpp"
#include "session/stored_case.hpp"
#include "store/cells.hpp"

namespace syslab::cli {
namespace {

constexpr const char* kRuns = R"(
SELECT run_uid, started_at, verb, coalesce(label, '') AS label, argv, planned, ok, not_asked, oom, failed, missing,
       measured_here
  FROM v_run
 ORDER BY run_order DESC, run_uid DESC
 LIMIT ?1)";

std::string counts_of(const std::vector<store::Cell>& row) {
  static constexpr std::array<const char*, 5> kNames{"ok", "not asked", "out of memory", "failed", "missing"};
  std::string text;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::int64_t count = row[6 + i].integer;
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, kNames[i]);
  }
  return text.empty() ? "-" : text;
}

// Of somebody else's database it may be any text: a line of its own would pass for a run.
std::string in_one_line(const std::string& text) {
  std::string line = printable(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

// Null for text that is not JSON, which has no place in a JSON document.
Json words_of(const std::string& argv) {
  Json words = json_or_discarded(argv);
  return words.is_discarded() ? Json() : words;
}

std::string command_of(const std::string& argv) {
  const Json words = words_of(argv);
  std::string text;
  if (!words.is_array()) return text;
  for (const Json& word : words) {
    text += (text.empty() ? "" : " ") + (word.is_string() ? shell_word(word.get<std::string>()) : json_text(word));
  }
  return in_one_line(text);
}

}  // namespace

Exit execute(const Context& context, const LogOptions& options) {
  require_database(context);
  if (!options.experiment.empty()) return log_series(context, options);
  const store::Store store = store::Store::open(context.global.database, store::Mode::read_only);
  warn_of_future_runs(context, store);
  const store::ResultSet runs = store.query(kRuns, {store::integer_cell(options.number)});
  std::map<std::string, std::vector<std::string>> names;  // the pins of a run that still mean it
  for (std::string last; const store::PinRow& pin : store.pins()) {
    if (pin.name != last) names[pin.run_uid].push_back(pin.name);
    last = pin.name;
  }
  Json all = Json::array();
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : runs.rows) {
    const std::vector<std::string>& pins = names[row[0].text];
    Json run{{"run", row[0].text},   {"started_at", row[1].text},     {"verb", row[2].text},
             {"label", row[3].text}, {"argv", words_of(row[4].text)}, {"pins", pins}};
    for (std::size_t i = 5; i < 11; ++i) run[runs.columns[i]] = row[i].integer;
    run["measured_here"] = row[11].integer != 0;
    all.push_back(run);
    std::string called = fmt::format("{}", fmt::join(pins, ", "));
    if (row[11].integer == 0) called += called.empty() ? "self-reported" : ", self-reported";
    if (!row[3].text.empty()) called += (called.empty() ? "" : ", ") + in_one_line(row[3].text);
    cells.push_back({report::short_uid(row[0].text), row[1].text.substr(0, 19) + "Z", called, counts_of(row),
                     command_of(row[4].text)});
  }
  if (context.console.json()) {
    context.console.print_document({{"runs", all}});
    return Exit::well;
  }
  if (cells.empty()) {
    context.console.print("no runs; `syslab run NAME` makes one\n");
    return Exit::well;
  }
  const std::vector<report::Column> header{{"run", "1", "s", "left"},
                                           {"started", "1", "s", "left"},
                                           {"pin, label", "1", "s", "left"},
                                           {"cases", "1", "s", "left"},
                                           {"command", "1", "s", "left"}};
  context.console.print(report::write_aligned(header, cells));
  return Exit::well;
}

}  // namespace syslab::cli
