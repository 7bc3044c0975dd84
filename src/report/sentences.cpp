#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "core/error.hpp"
#include "report/cells.hpp"
#include "report/grid.hpp"

namespace syslab::report {
namespace {

Column column_of(const Table& table, const std::string& name) {
  const auto& columns = table.source.columns;
  const auto declared = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
  return declared != columns.end() ? *declared : Column{name, "1", ".3g", "left"};
}

}  // namespace

std::vector<Text> sentences(const Table& table) {
  static const std::regex kField(R"(\{(\w+)\})");
  const std::string& sentence = table.source.sentence;
  std::vector<Text> found;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    Text filled;
    bool complete = true;
    std::size_t done = 0;
    for (std::sregex_iterator match(sentence.begin(), sentence.end(), kField), end; match != end; ++match) {
      filled = filled + marked(sentence.substr(done, static_cast<std::size_t>(match->position()) - done));
      done = static_cast<std::size_t>(match->position() + match->length());
      const std::string name = (*match)[1];
      if (!find_column(table.result, name)) {
        throw Error(ErrorKind::internal, fmt::format("sentence {}.sql wants {{{}}}, its SELECT gives {}",
                                                     table.source.id, name, fmt::join(table.result.columns, ", ")));
      }
      complete = complete && cell_of(table.result, row, name).type != store::Cell::Type::null;
      filled.push_back(grid_cell(table, row, column_of(table, name)).span);
    }
    const std::string run = plain(cell_of(table.result, row, "run_uid"));
    const auto& smoke = table.smoke_runs;
    const bool is_smoke = holds_times(table.source) && std::find(smoke.begin(), smoke.end(), run) != smoke.end();
    if (is_smoke) filled.insert(filled.begin(), {{Style::emphasis, "Smoke run:"}, {Style::plain, " "}});
    if (complete) found.push_back(filled + marked(sentence.substr(done)));
  }
  return found;
}

}  // namespace syslab::report
