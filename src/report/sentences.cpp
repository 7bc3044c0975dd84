#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
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

// "1 blocks" as "1 block": a sentence is written for any number. `text` is what follows a value.
std::string after(const std::string& value, const std::string& text) {
  static const std::map<std::string, std::string, std::less<>> kSingular{
      {"additions", "addition"}, {"blocks", "block"},         {"bytes", "byte"},      {"cases", "case"},
      {"devices", "device"},     {"elements", "element"},     {"launches", "launch"}, {"layers", "layer"},
      {"matrices", "matrix"},    {"messages", "message"},     {"passes", "pass"},     {"queries", "query"},
      {"ranks", "rank"},         {"operations", "operation"}, {"rows", "row"},        {"samples", "sample"},
      {"sizes", "size"},         {"steps", "step"},           {"streams", "stream"},  {"tensors", "tensor"},
      {"tokens", "token"}};
  if (value != "1" || !text.starts_with(' ')) return text;
  const std::size_t end = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 1), text.size());
  const auto one = kSingular.find(std::string_view(text).substr(1, end - 1));
  return one == kSingular.end() ? text : " " + one->second + text.substr(end);
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
    std::string value;  // of the last field
    for (std::sregex_iterator match(sentence.begin(), sentence.end(), kField), end; match != end; ++match) {
      filled = filled + marked(after(value, sentence.substr(done, static_cast<std::size_t>(match->position()) - done)));
      done = static_cast<std::size_t>(match->position() + match->length());
      const std::string name = (*match)[1];
      if (!find_column(table.result, name)) {
        throw Error(ErrorKind::internal, fmt::format("sentence {}.sql wants {{{}}}, its SELECT gives {}",
                                                     table.source.id, name, fmt::join(table.result.columns, ", ")));
      }
      complete = complete && cell_of(table.result, row, name).type != store::Cell::Type::null;
      filled.push_back(grid_cell(table, row, column_of(table, name)).span);
      value = filled.back().text;
    }
    const std::string run = plain(cell_of(table.result, row, "run_uid"));
    const auto& smoke = table.smoke_runs;
    const bool is_smoke = holds_times(table.source) && std::find(smoke.begin(), smoke.end(), run) != smoke.end();
    if (is_smoke) filled.insert(filled.begin(), {{Style::emphasis, "Smoke run:"}, {Style::plain, " "}});
    if (complete) found.push_back(filled + marked(after(value, sentence.substr(done))));
  }
  return found;
}

}  // namespace syslab::report
