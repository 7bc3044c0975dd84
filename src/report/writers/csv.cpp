// CSV by RFC 4180, lines ended by \n. Every column of the result at full precision; a null is an empty field, a text
// that is empty a quoted one. A text that a spreadsheet would execute has an apostrophe before it.
#include <algorithm>
#include <charconv>

#include "core/text/printable.hpp"
#include "report/cells.hpp"
#include "report/writers/writers.hpp"

namespace syslab::report {
namespace {

bool is_number(const std::string& text) {
  double ignored = 0;
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), ignored);
  return error == std::errc{} && end == text.data() + text.size();
}

// A spreadsheet executes a cell that begins like a formula; behind an apostrophe it is a text.
std::string as_text(std::string text) {
  const bool executed = !text.empty() && std::string_view("=+-@\t\n").find(text.front()) != std::string_view::npos;
  return executed && !is_number(text) ? "'" + text : text;
}

std::string line_of(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    line += field;
  }
  return line + '\n';
}

std::string csv_rows(const store::ResultSet& result) {
  std::string out;
  for (const auto& row : result.rows) {
    std::vector<std::string> fields;
    for (const store::Cell& cell : row) {
      const bool empty_text = cell.type == store::Cell::Type::text && cell.text.empty();
      const bool is_text = cell.type == store::Cell::Type::text;
      fields.push_back(empty_text ? "\"\"" : escape_csv(is_text ? as_text(plain(cell)) : plain(cell)));
    }
    out += line_of(fields);
  }
  return out;
}

}  // namespace

std::string escape_csv(std::string_view text) {
  const bool quote = text.find_first_of(",\"\r\n") != std::string_view::npos ||
                     (!text.empty() && (text.front() == ' ' || text.back() == ' '));
  if (!quote) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string write_csv(const Table& table) {
  std::vector<std::string> header;
  for (const std::string& name : table.result.columns) {
    const auto& columns = table.source.columns;
    const auto declared =
        std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
    const bool has_unit = declared != columns.end() && declared->unit != "1";
    header.push_back(escape_csv(as_text(has_unit ? name + " [" + declared->unit + "]" : name)));
  }
  return line_of(header) + csv_rows(table.result);
}

std::string write_csv(const store::ResultSet& result) {
  std::vector<std::string> header;
  for (const std::string& name : result.columns) header.push_back(escape_csv(as_text(printable(name))));
  return line_of(header) + csv_rows(result);
}

}  // namespace syslab::report
