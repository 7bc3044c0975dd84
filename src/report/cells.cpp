#include "report/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "report/byte_unit.hpp"

namespace syslab::report {
namespace {

using Type = store::Cell::Type;

constexpr std::string_view kNotMeasured = "not measured";
constexpr std::size_t kLongestMessage = 120;
constexpr std::size_t kUidCharacters = 8;

double number_of(const store::Cell& cell) {
  return cell.type == Type::integer ? static_cast<double>(cell.integer) : cell.real;
}

bool is_number(const store::Cell& cell) { return cell.type == Type::integer || cell.type == Type::real; }

// Truncates between characters, not within one of UTF-8.
std::string shortened(const std::string& text, std::size_t longest) {
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

int exponent_of(double value) { return static_cast<int>(std::floor(std::log10(std::abs(value)))); }

// "OOM (needs 242 GiB)", "skipped: …".
std::string status_text(const Table& table, std::size_t row, const std::string& status) {
  const std::string word = status_word(status);
  const store::Cell& message = cell_of(table.result, row, "message");
  const std::optional<Status> ended = status_of(table, row);
  if (ended == Status::ok || message.type != Type::text || message.text.empty()) return word;
  const std::string reason = shortened(plain(message), kLongestMessage);
  return ended == Status::oom ? fmt::format("{} ({})", word, reason) : word + ": " + reason;
}

// Of a row that ended otherwise than ok the first missing value says how it ended, the others are dashes; why stands in
// the column of the status, or, where a table has none, in that first value.
std::string missing(const Table& table, std::size_t row, const Column& column) {
  const store::Cell& status = cell_of(table.result, row, "status");
  if (status_of(table, row).value_or(Status::ok) == Status::ok) {
    return table.source.blank.empty() ? std::string(kNotMeasured) : table.source.blank;
  }
  const auto& columns = table.source.columns;
  const auto first = std::find_if(columns.begin(), columns.end(), [&](const Column& other) {
    return !other.only_if_varies && cell_of(table.result, row, other.name).type == Type::null;
  });
  if (first != columns.end() && first->name != column.name) return "–";
  const bool says_why =
      std::any_of(columns.begin(), columns.end(), [](const Column& c) { return c.format == "status"; });
  return says_why ? status_word(status.text) : status_text(table, row, status.text);
}

// --- intervals ---

// With an interval this wide no digit of the value is certain.
bool is_wide(double value, double uncertainty) { return uncertainty > 0.5 * std::abs(value); }

// An interval this narrow is one value: its ends are apart by the rounding of sums. No clock tells times so finely.
bool is_rounding(double value, double uncertainty) { return uncertainty <= 1e-12 * std::abs(value); }

// Rounding may carry: 0.0996 is 0.10 to two digits.
double two_digits(double uncertainty) { return std::stod(fmt::format("{:.1e}", uncertainty)); }

// The place of the second digit of an uncertainty above 0; below 0 tens, hundreds, ….
int decimals_of(double uncertainty) { return 1 - exponent_of(two_digits(uncertainty)); }

constexpr int kMostDecimals = 12;

std::string at_place(double value, int decimals) {
  if (decimals > kMostDecimals) return fmt::format("{:.3e}", value);
  if (decimals >= 0) return fmt::format("{:.{}f}", value, decimals);
  const double place = std::pow(10.0, -decimals);
  return fmt::format("{:.0f}", std::round(value / place) * place);
}

// "1.2346 (1.2301 … 1.2377)", all to the place of two digits of the longer side; where that leaves nothing of the
// value, three digits of each. `said` follows the ends.
std::string with_ends(double value, double low, double high, std::string_view said) {
  const double uncertainty = std::max(value - low, high - value);
  const bool by_place = !is_rounding(value, uncertainty) && std::isfinite(uncertainty) && !is_wide(value, uncertainty);
  const auto text = [&](double one) {
    return by_place ? at_place(one, decimals_of(uncertainty)) : with_digits(one, 3);
  };
  return fmt::format("{} ({} … {}{})", text(value), text(low), text(high), said);
}

// A ratio that may be 1 shows both ends, whatever its width, because they are the result.
std::string with_verdict(double value, double low, double high) {
  if (!(low <= 1 && 1 <= high)) return with_interval(value, low, high);
  return with_ends(value, low, high, ", no measurable difference");
}

// In prose: three digits where the interval leaves them, else the longer side of it on both.
std::string in_prose(double value, double low, double high) {
  constexpr double kThreeDigits = 0.005;
  const double uncertainty = std::max(value - low, high - value);
  if (!std::isfinite(uncertainty) || uncertainty < 0 || is_wide(value, uncertainty)) {
    return with_interval(value, low, high);
  }
  if (uncertainty <= kThreeDigits * std::abs(value)) return with_digits(value, 3);
  return with_interval(value, value - uncertainty, value + uncertainty);
}

// Of "ci(low, high)" and "ratio(low, high)", in prose "brief_ci(low, high)", in a hand-in's table "even_ci(low, high)",
// whose ± has the longer side.
std::string interval_text(const Table& table, std::size_t row, const Column& column, double value) {
  const std::vector<std::string> ends = ends_of_interval(column);
  const store::Cell& low = cell_of(table.result, row, ends[0]);
  const store::Cell& high = cell_of(table.result, row, ends[1]);
  const bool known = is_number(low) && is_number(high);
  if (column.format.starts_with("brief_") && known) {
    const double from = number_of(low), to = number_of(high);
    const bool is_no_ratio = column.format.find("ratio") == std::string::npos;
    return is_no_ratio || from > 1 || to < 1 ? in_prose(value, from, to) : with_verdict(value, from, to);
  }
  if (column.format.starts_with("even_") && known) {
    const double side = std::max(value - number_of(low), number_of(high) - value);
    if (!is_wide(value, side)) return with_interval(value, value - side, value + side);
  }
  if (column.format.find("ratio") != std::string::npos) {
    return known ? with_verdict(value, number_of(low), number_of(high)) : with_digits(value, 3) + " (no interval)";
  }
  return known ? with_interval(value, number_of(low), number_of(high)) : with_digits(value, 3);
}

// A value below this part of its column's unit of bytes gets a unit of its own: "168 B".
constexpr double kFarBelow = 0.01;

bool bears_digits(const Column& column) { return column.format.back() == 'g' && bytes_in(column.unit); }

// Columns of bytes in one unit are compared: they change it together.
void fit_units(const store::ResultSet& result, std::vector<Column>& columns) {
  std::map<std::string, double> most;  // by declared unit
  for (const Column& column : columns) {
    if (!bears_digits(column)) continue;
    for (std::size_t row = 0; row < result.rows.size(); ++row) {
      const store::Cell& cell = cell_of(result, row, column.name);
      if (is_number(cell)) most[column.unit] = std::max(most[column.unit], std::abs(number_of(cell)));
    }
  }
  for (Column& column : columns) {
    if (!bears_digits(column)) continue;
    const double declared = *bytes_in(column.unit), largest = most[column.unit];
    if (!std::isfinite(largest) || largest == 0 || largest >= 1) continue;
    column.unit = fitting_unit(largest * declared, column.unit);
    column.factor = declared / *bytes_in(column.unit);
  }
}

// Without repetitions.
std::set<std::string> values_of(const Table& table, const Column& column) {
  std::set<std::string> values;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    const store::Cell& cell = cell_of(table.result, row, column.name);
    if (cell.type != Type::null) values.insert(plain(cell));
  }
  return values;
}

// Of a value in the unit of its column.
std::string digits_of(double value, int digits, const Column& column) {
  if (!bytes_in(column.unit) || value == 0 || !std::isfinite(value)) return with_digits(value, digits);
  if (column.unit == "B") return fmt::format("{:.0f}", value);
  return std::abs(value) < kFarBelow ? with_fitting_unit(value, column.unit, digits) : with_digits(value, digits);
}

}  // namespace

std::optional<Status> status_of(const Table& table, std::size_t row) {
  const store::Cell& status = cell_of(table.result, row, "status");
  if (status.type != Type::text || status.text.empty()) return std::nullopt;
  return syslab::status_of(status.text).value_or(Status::error);
}

std::string status_word(std::string_view status) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kWords{
      {{"oom", "OOM"}, {"check_failed", "wrong"}, {"not_run", "not run"}}};
  for (const auto& [name, word] : kWords) {
    if (status == name) return std::string(word);
  }
  return std::string(status);
}

std::string short_uid(const std::string& uid) {
  const std::size_t last_group = uid.rfind('-');
  return uid.substr(last_group == std::string::npos ? 0 : last_group + 1, kUidCharacters);
}

std::string with_digits(double value, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  if (value == 0) return "0";
  const std::string rounded = fmt::format("{:.{}e}", value, digits - 1);  // 9.996 with three digits is 10.0
  const int exponent = exponent_of(std::stod(rounded));
  if (exponent < -4 || exponent >= 7) return rounded;
  const int decimals = digits - 1 - exponent;
  if (decimals >= 0) return fmt::format("{:.{}f}", value, decimals);
  return fmt::format("{:.0f}", std::stod(rounded));
}

std::string with_interval(double value, double low, double high) {
  const double below = value - low, above = high - value, uncertainty = std::max(below, above);
  if (!std::isfinite(value) || !std::isfinite(uncertainty) || uncertainty < 0) return with_digits(value, 3);
  if (is_rounding(value, uncertainty)) return with_digits(value, 4) + " ± 0";
  // ± means that both sides are equally long. With two digits that is true to one in the last place, which is up to a
  // tenth.
  constexpr double kAlike = 0.1;
  const bool alike = std::abs(above - below) <= kAlike * uncertainty;
  if (!alike || is_wide(value, uncertainty)) return with_ends(value, low, high, "");
  const int decimals = decimals_of(uncertainty);
  if (decimals > kMostDecimals) return fmt::format("{:.3e} ± {:.1e}", value, uncertainty);
  return at_place(value, decimals) + " ± " + at_place(two_digits(uncertainty), decimals);
}

std::vector<std::string> ends_of_interval(const Column& column) {
  const std::size_t open = column.format.find('(');
  const std::string_view kind = std::string_view(column.format).substr(0, open);
  if (open == std::string::npos || !(kind.ends_with("ci") || kind.ends_with("ratio"))) return {};
  std::vector<std::string> names =
      split(std::string_view(column.format).substr(open + 1, column.format.size() - open - 2), ',');
  for (std::string& name : names) name = trim(name);
  return names;
}

std::optional<std::size_t> find_column(const store::ResultSet& result, std::string_view name) {
  const auto found = std::find(result.columns.begin(), result.columns.end(), name);
  if (found == result.columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - result.columns.begin());
}

const store::Cell& cell_of(const store::ResultSet& result, std::size_t row, std::string_view name) {
  static const store::Cell kNull;
  const auto column = find_column(result, name);
  return column ? result.rows.at(row).at(*column) : kNull;
}

std::string plain(const store::Cell& cell) {
  switch (cell.type) {
    case Type::null:
      return {};
    case Type::integer:
      return std::to_string(cell.integer);
    case Type::real:
      return fmt::format("{}", cell.real);
    case Type::text:
      return printable(cell.text);
  }
  return {};
}

std::string formatted(const Table& table, std::size_t row, const Column& column) {
  const store::Cell& cell = cell_of(table.result, row, column.name);
  const std::string& format = column.format;
  if (cell.type == Type::null) return missing(table, row, column);
  if (format == "status") return status_text(table, row, cell.text);
  if (format == "outcome") return status_word(plain(cell));
  if (format == "uid") return short_uid(plain(cell));
  if (format == "s" || is_code(column) || format == "strong" || !is_number(cell)) {
    const std::string text = plain(cell);
    return text.empty() ? std::string("(empty)") : text;
  }
  const double value = number_of(cell) * column.factor;
  if (format == "flag") return value != 0 ? "yes" : "no";
  if (format == "d") return cell.type == Type::integer ? std::to_string(cell.integer) : fmt::format("{:.0f}", value);
  if (format.back() == ')') return interval_text(table, row, column, value);
  const int digits = std::stoi(format.substr(1));
  if (format.back() == 'g') return digits_of(value, digits, column);
  if (format.back() == 'b') return with_fitting_unit(value, column.unit, digits);
  if (format.back() == 'f') return fmt::format("{:.{}f}", value, digits);
  return fmt::format("{:.{}e}", value, digits);
}

bool holds_times(const TableSource& source) {
  constexpr std::array<std::string_view, 4> kOthers{"1", "B", "%", "UTC"};
  return std::any_of(source.columns.begin(), source.columns.end(), [&](const Column& column) {
    return std::find(kOthers.begin(), kOthers.end(), column.unit) == kOthers.end();
  });
}

std::string sparkline(const std::vector<double>& values) {
  static constexpr std::array<const char*, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty()) throw Error(ErrorKind::internal, "a line of bars needs a value");
  const auto [low, largest] = std::ranges::minmax(values);
  const double high = std::max(largest, 1.01 * low);
  std::string line;
  for (const double value : values) {
    const double height = high > low ? (value - low) / (high - low) : 0;
    line += kBars[std::min<std::size_t>(7, static_cast<std::size_t>(8 * height))];
  }
  return line;
}

std::vector<Column> shown_columns(const Table& table) {
  std::vector<Column> shown;
  for (const Column& column : table.source.columns) {
    if (!column.only_if_varies || values_of(table, column).size() > 1) shown.push_back(column);
  }
  fit_units(table.result, shown);
  return shown;
}

std::vector<Column> unvaried_columns(const Table& table) {
  std::vector<Column> unvaried;
  for (const Column& column : table.source.columns) {
    if (column.only_if_varies && values_of(table, column).size() == 1) unvaried.push_back(column);
  }
  fit_units(table.result, unvaried);
  return unvaried;
}

}  // namespace syslab::report
