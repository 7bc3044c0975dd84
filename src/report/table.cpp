#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/contains.hpp"
#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/provenance.hpp"
#include "report/published.hpp"
#include "report/sql_header.hpp"
#include "store/cells.hpp"

namespace syslab::report {
namespace {

[[noreturn]] void malformed(const std::string& id, std::size_t line, const std::string& what) {
  throw Error(ErrorKind::internal, fmt::format("table {}.sql, line {}: {}", id, line, what));
}

// "low, high)", as it follows "ci(".
bool names_two_columns(std::string_view text) {
  if (!text.ends_with(')')) return false;
  const std::vector<std::string> names = split(text.substr(0, text.size() - 1), ',');
  return names.size() == 2 && std::ranges::all_of(names, [](const std::string& name) {
           return !name.empty() && name.find_first_of("()") == std::string::npos;
         });
}

bool is_format(std::string_view format) {
  constexpr std::array<std::string_view, 8> kWords{"d", "s", "code", "strong", "flag", "status", "outcome", "uid"};
  if (std::ranges::find(kWords, format) != kWords.end()) return true;
  for (const std::string_view of_interval : {"ci(", "ratio("}) {
    if (format.starts_with(of_interval)) return names_two_columns(format.substr(of_interval.size()));
  }
  // ".3g"
  const std::size_t kind = format.find_first_not_of("0123456789", 1);
  return format.starts_with('.') && kind != std::string_view::npos && kind > 1 && kind + 1 == format.size() &&
         std::string_view("gfeb").find(format[kind]) != std::string_view::npos;
}

Column parse_column(const std::string& id, std::size_t line, const std::string& text) {
  const std::vector<std::string> fields = split(text, '|');
  if (fields.size() != 4) {
    malformed(id, line, fmt::format("column '{}' has {} fields, wanted name|unit|format|align", text, fields.size()));
  }
  Column column{trim(fields[0]), trim(fields[1]), trim(fields[2]), trim(fields[3])};
  if (!column.name.empty() && column.name.back() == '?') {
    column.only_if_varies = true;
    column.name.pop_back();
  }
  constexpr std::string_view kAs = " as ";
  if (const std::size_t as = column.name.find(kAs); as != std::string::npos) {
    column.label = trim(std::string_view(column.name).substr(as + kAs.size()));
    column.name = trim(std::string_view(column.name).substr(0, as));
  }
  if (column.name.empty() || column.unit.empty()) malformed(id, line, "a column needs a name and a unit (1: none)");
  if (!is_format(column.format)) malformed(id, line, fmt::format("unknown format '{}'", column.format));
  if (column.align != "left" && column.align != "right") {
    malformed(id, line, fmt::format("align is left or right, found '{}'", column.align));
  }
  return column;
}

// The columns that `name: …` of reports/columns.txt lists; a line that begins with a space goes on.
std::string shared_columns(const std::string& id, std::size_t line, const std::string& name) {
  std::string list;
  bool inside = false;
  for (const std::string& text : split(find_resource("reports/columns.txt").value_or(""), '\n')) {
    if (!text.starts_with(' ')) inside = text.starts_with(name + ":");
    if (inside) list += text.starts_with(' ') ? text : text.substr(name.size() + 1);
  }
  if (list.empty()) malformed(id, line, fmt::format("reports/columns.txt has no list '{}'", name));
  return list;
}

std::vector<Column> parse_columns(const std::string& id, std::size_t line, const std::string& text) {
  std::vector<Column> columns;
  for (const std::string& part : split(text, ';')) {
    const std::string column = trim(part);
    if (column.empty()) continue;
    if (column.front() != '@') {
      columns.push_back(parse_column(id, line, column));
      continue;
    }
    const std::vector<Column> shared = parse_columns(id, line, shared_columns(id, line, column.substr(1)));
    columns.insert(columns.end(), shared.begin(), shared.end());
  }
  return columns;
}

bool has_column(const TableSource& source, const std::string& name) {
  return std::ranges::find(source.columns, name, &Column::name) != source.columns.end();
}

// `source` has its columns.
Explanation parse_about(const TableSource& source, const HeaderField& field) {
  Explanation made{{}, field.value};
  for (const std::string& part : split(std::string_view(field.key).substr(std::string_view("about").size()), ',')) {
    const std::string name = trim(part);
    if (name.empty()) malformed(source.id, field.line, "a sentence reads 'about COLUMN[, COLUMN]: Sentence.'");
    if (!has_column(source, name)) {
      std::vector<std::string> names;
      for (const Column& column : source.columns) names.push_back(column.name);
      malformed(source.id, field.line, unknown_name("column", name, names));
    }
    if (contains(made.columns, name)) malformed(source.id, field.line, fmt::format("'{}' is named twice", name));
    made.columns.push_back(name);
  }
  if (!made.text.ends_with('.')) malformed(source.id, field.line, "the sentence ends with a full stop");
  return made;
}

void set_field(TableSource& source, std::size_t line, const std::string& key, const std::string& value) {
  if (key == "title") {
    source.title = value;
  } else if (key == "caption") {
    source.caption = value;
  } else if (key == "experiment") {
    source.experiment = value;
  } else if (key == "sentence") {
    source.sentence = value;
  } else if (key == "command") {
    source.command = value;
  } else if (key == "origins") {
    if (value != "all") malformed(source.id, line, "'origins' is 'all', or left out");
    source.of_all_origins = true;
  } else if (key == "empty") {
    source.empty = value;
  } else if (key == "blank") {
    source.blank = value;
  } else if (key == "note") {
    source.notes.push_back(value);
  } else if (key == "fills") {
    source.fills = parts_filled(value);
  } else if (key == "columns") {
    source.columns = parse_columns(source.id, line, value);
  } else {
    malformed(source.id, line,
              fmt::format("unknown header '{}'; there are title, caption, about, experiment, columns, note, "
                          "sentence, command, empty, blank, fills, like, with",
                          key));
  }
}

}  // namespace

std::string whole_caption(const TableSource& source) {
  std::string whole = source.caption;
  for (const Explanation& one : source.about) whole += (whole.empty() ? "" : " ") + one.text;
  return whole;
}

TableSource parse_table(const std::string& id, const std::string& text) {
  const SqlFile file = read_sql_file(fmt::format("table {}.sql", id), "tables", text);
  TableSource source;
  source.id = id;
  source.sql = file.sql;
  for (const HeaderField& field : file.fields) {
    if (!is_about(field)) set_field(source, field.line, field.key, field.value);
  }
  for (const HeaderField& field : file.fields) {
    if (is_about(field)) source.about.push_back(parse_about(source, field));
  }
  if (source.experiment.empty()) malformed(id, 1, "the header has no 'experiment'");
  if (source.title.empty() == source.sentence.empty()) malformed(id, 1, "the header has either a title or a sentence");
  if (source.sentence.empty() && source.columns.empty()) malformed(id, 1, "the header has no 'columns'");
  return source;
}

Table fill(const TableSource& source, const store::Store& store, const std::string& experiment) {
  Table table{source, {}, {}, {}, {}};
  if (!experiment.empty()) table.source.experiment = experiment;
  std::vector<store::Cell> parameters;
  const auto bind = [&](std::string_view mark, const std::string& text) {
    if (source.sql.find(mark) != std::string::npos) parameters.push_back(store::text_cell(text));
  };
  bind("?1", table.source.experiment);
  bind("?2", published_entries_of(table.source.experiment));
  // A sentence is of what was measured here. Only if that has no row is it of what came from elsewhere, and says so.
  if (!source.sentence.empty() && !source.of_all_origins) table.result = store.query_own(source.sql, parameters);
  if (table.result.rows.empty()) table.result = store.query(source.sql, parameters);
  const auto demand = [&](const std::string& name, const std::string& what) {
    if (find_column(table.result, name)) return;
    throw Error(ErrorKind::internal, fmt::format("table {}.sql declares {}, its SELECT gives {}", source.id, what,
                                                 fmt::join(table.result.columns, ", ")));
  };
  for (const Column& column : source.columns) {
    demand(column.name, fmt::format("the column '{}'", column.name));
    for (const std::string& end : ends_of_interval(column)) {
      demand(end, fmt::format("the column '{}' with an interval of which '{}' is an end", column.name, end));
    }
  }
  if (table.source.command.empty()) table.source.command = "syslab run {experiment}";
  constexpr std::string_view kField = "{experiment}";
  if (const auto at = table.source.command.find(kField); at != std::string::npos) {
    table.source.command.replace(at, kField.size(), table.source.experiment);
  }
  const Provenance provenance = provenance_of(table.result, store);
  table.footnote = provenance.footnote();
  table.warning = provenance.warning();
  if (std::string note = provenance.note(); table.source.sentence.empty() && !note.empty()) {
    table.source.notes.push_back(std::move(note));
  }
  table.smoke_runs = provenance.smoke_runs;
  table.self_reported = provenance.self_reported;
  return table;
}

}  // namespace syslab::report
