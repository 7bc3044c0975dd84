#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "core/error.hpp"
#include "core/text.hpp"
#include "report/cells.hpp"
#include "report/writers.hpp"

namespace syslab::report {
namespace {

// Without regard to what stands around it.
std::string escape_inline(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "<br>";
    } else if (c == '\0') {
      out += "\xEF\xBF\xBD";
    } else if (code < 0x20 || code == 0x7F) {
      out += fmt::format("&#{};", code);
    } else {
      if (std::string_view("\\`*_[]<>|~&$#").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

bool is_plain_code(const std::string& text) {
  return !text.empty() && text.find_first_of("`|\\\n\r\t") == std::string::npos && text.front() != ' ' &&
         text.back() != ' ';
}

std::string as_code(const std::string& text) { return is_plain_code(text) ? "`" + text + "`" : escape_markdown(text); }

std::string header_of(const Column& column) {
  std::string name = column.heading();
  std::replace(name.begin(), name.end(), '_', ' ');
  name = escape_markdown(name);
  return column.unit == "1" ? name : fmt::format("{} [{}]", name, column.unit);
}

std::string row_of(const std::vector<std::string>& cells) { return fmt::format("| {} |\n", fmt::join(cells, " | ")); }

std::string rule_of(const std::vector<Column>& columns) {
  std::vector<std::string> marks;
  for (const Column& column : columns) marks.emplace_back(column.align == "right" ? "---:" : ":---");
  return row_of(marks);
}

// A text whose code spans stand between backticks already.
std::string escape_around_code(const std::string& text) {
  std::string out;
  bool in_code = false;
  for (const std::string& part : split(text, '`')) {
    out += in_code ? "`" + part + "`" : escape_inline(part);
    in_code = !in_code;
  }
  return out;
}

}  // namespace

std::string escape_markdown(std::string_view text) {
  if (text.empty()) return {};
  // A cell is trimmed when it is read: a space at an end must not look like one.
  const auto guarded = [](char c) { return c == ' ' ? std::string("&#32;") : escape_inline(std::string(1, c)); };
  if (text.size() == 1) return guarded(text.front());
  return guarded(text.front()) + escape_inline(text.substr(1, text.size() - 2)) + guarded(text.back());
}

std::string markdown_cell(const Table& table, std::size_t row, const Column& column) {
  const std::string text = formatted(table, row, column);
  const bool has_value = cell_of(table.result, row, column.name).type != store::Cell::Type::null;
  if (column.format == "code" && has_value) return as_code(text);
  if (column.format == "uid" && has_value) return as_code(text);
  if ((column.format == "outcome" || column.format == "status") && has_value) {
    const bool well = text == "passed" || text == "ok";
    return well ? text : "**" + escape_markdown(text) + "**";
  }
  return escape_markdown(text);
}

std::string write_markdown(const Table& table) {
  std::string out = fmt::format("**{}.**", table.source.title);
  if (!table.source.caption.empty()) out += " " + table.source.caption;
  out += "\n\n";
  if (table.result.rows.empty()) {
    if (!table.source.empty.empty()) return out + table.source.empty + "\n";
    return out + fmt::format("Not measured; `{}` would tell.\n", table.source.command);
  }
  if (!table.warning.empty() && holds_times(table.source)) out += "> **" + escape_markdown(table.warning) + "**\n\n";

  const std::vector<Column> columns = shown_columns(table);
  std::vector<std::string> header;
  for (const Column& column : columns) header.push_back(header_of(column));
  out += row_of(header) + rule_of(columns);
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    std::vector<std::string> cells;
    for (const Column& column : columns) cells.push_back(markdown_cell(table, row, column));
    out += row_of(cells);
  }
  for (const std::string& note : table.source.notes) out += "\n" + note + "\n";
  if (!table.footnote.empty()) out += "\n<sub>" + escape_around_code(table.footnote) + "</sub>\n";
  return out;
}

std::string write_markdown(const store::ResultSet& result) {
  if (result.columns.empty()) return {};
  std::vector<Column> columns;
  for (std::size_t i = 0; i < result.columns.size(); ++i) {
    const bool numeric =
        !result.rows.empty() && std::all_of(result.rows.begin(), result.rows.end(),
                                            [i](const auto& row) { return row[i].type != store::Cell::Type::text; });
    columns.push_back({result.columns[i], "1", "s", numeric ? "right" : "left", false});
  }
  std::vector<std::string> header;
  for (const Column& column : columns) header.push_back(escape_markdown(column.name));
  std::string out = row_of(header) + rule_of(columns);
  for (const auto& row : result.rows) {
    std::vector<std::string> cells;
    for (const store::Cell& cell : row) {
      cells.push_back(cell.type == store::Cell::Type::null ? "NULL" : escape_markdown(plain(cell)));
    }
    out += row_of(cells);
  }
  return out;
}

std::string write_sentences(const Table& table) {
  static const std::regex kField(R"(\{(\w+)\})");
  const std::string& sentence = table.source.sentence;
  std::string text;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    std::string filled;
    bool complete = true;
    std::size_t done = 0;
    for (std::sregex_iterator match(sentence.begin(), sentence.end(), kField), end; match != end; ++match) {
      filled += sentence.substr(done, static_cast<std::size_t>(match->position()) - done);
      done = static_cast<std::size_t>(match->position() + match->length());
      const std::string name = (*match)[1];
      if (!find_column(table.result, name)) {
        throw Error(ErrorKind::internal, fmt::format("sentence {}.sql wants {{{}}}, its SELECT gives {}",
                                                     table.source.id, name, fmt::join(table.result.columns, ", ")));
      }
      complete = complete && cell_of(table.result, row, name).type != store::Cell::Type::null;
      const auto& columns = table.source.columns;
      const auto declared =
          std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
      filled +=
          markdown_cell(table, row, declared != columns.end() ? *declared : Column{name, "1", ".3g", "left", false});
    }
    const std::string run = plain(cell_of(table.result, row, "run_uid"));
    const auto& smoke = table.smoke_runs;
    const bool is_smoke = holds_times(table.source) && std::find(smoke.begin(), smoke.end(), run) != smoke.end();
    if (complete) text += std::string(is_smoke ? "- *Smoke run:* " : "- ") + filled + sentence.substr(done) + "\n";
  }
  if (text.empty()) text = fmt::format("- Not measured; `{}` would tell.\n", table.source.command);
  return text;
}

}  // namespace syslab::report
