#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string_view>
#include <tuple>

#include "core/contains.hpp"
#include "core/error.hpp"
#include "report/cells.hpp"
#include "report/grid.hpp"
#include "report/hand_in_table.hpp"

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

// A {name} of a sentence.
struct Field {
  std::size_t begin, end;
  std::string name;
};

std::optional<Field> next_field(const std::string& sentence, std::size_t from) {
  constexpr std::string_view kOfName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  for (std::size_t open = sentence.find('{', from); open != std::string::npos; open = sentence.find('{', open + 1)) {
    const std::size_t close = sentence.find_first_not_of(kOfName, open + 1);
    if (close != std::string::npos && close > open + 1 && sentence[close] == '}') {
      return Field{open, close + 1, sentence.substr(open + 1, close - open - 1)};
    }
  }
  return std::nullopt;
}

bool is_circumstance(std::string_view name) {
  static const std::set<std::string_view> kNames{"backend",   "context", "device",    "implementation",
                                                 "precision", "sent",    "travelling"};
  return kNames.contains(name);
}

// Whether a hand-in leaves this value out, because its first page or the sentence before says it, or it is what one
// expects.
bool is_told(const Brevity& brevity, const std::string& name, const std::string& value) {
  if (!brevity.brief || value.empty()) return brevity.brief && name == "protocol";
  if (name == "protocol" || value == "uncompressed" || (name == "device" && value == brevity.device)) return true;
  const auto said = brevity.said.find(name);
  return is_circumstance(name) && said != brevity.said.end() && said->second == value;
}

Circumstances circumstances_of(const Table& table, std::size_t row) {
  Circumstances found;
  for (std::size_t from = 0; const auto field = next_field(table.source.sentence, from);) {
    from = field->end;
    if (is_circumstance(field->name)) found[field->name] = plain(cell_of(table.result, row, field->name));
  }
  return found;
}

// Takes a field out of a list in brackets or between commas: of "(fp32, protocol " and ", H100)" there stay "(fp32" and
// ", H100)". False where it stands in no list.
bool take_out(std::string& before, std::string& behind) {
  std::string left = before;
  for (const std::string_view word : {"protocol ", "context ", "gradients "}) {
    if (left.ends_with(word)) left.erase(left.size() - word.size());
  }
  if (left.ends_with(", ")) {
    left.erase(left.size() - 2);
  } else if (left.ends_with(" (") && behind.starts_with(")")) {
    left.erase(left.size() - 2);
    behind.erase(0, 1);
  } else if (left.ends_with("(") && behind.starts_with(", ")) {
    behind.erase(0, 2);
  } else {
    return false;
  }
  before = left;
  return true;
}

// "H100" of "NVIDIA H100 80GB HBM3", "Intel Xeon" of "Intel(R) Xeon(R) Processor": the first page has the whole name.
std::string short_device(std::string name) {
  static const std::regex kNeedless(R"(\((R|TM)\)|^NVIDIA | \d+GB.*$| Processor$)");
  name = std::regex_replace(name, kNeedless, "");
  return name;
}

Column brief(Column column) {
  if (column.format.back() == ')') column.format = "brief_" + column.format;
  return column;
}

// A sentence without the fields that are told already, which no value follows.
std::string without_told(const Table& table, std::size_t row, const Brevity& brevity) {
  std::string sentence = table.source.sentence;
  for (std::size_t from = 0; const auto field = next_field(sentence, from);) {
    from = field->end;
    if (!is_told(brevity, field->name, plain(cell_of(table.result, row, field->name)))) continue;
    std::string before = sentence.substr(0, field->begin), behind = sentence.substr(field->end);
    if (!take_out(before, behind)) continue;
    from = before.size();
    sentence = before + behind;
  }
  return sentence;
}

// "-0.9" with the sign of a number; the hyphen of a word, and whatever is code, stays.
Text with_minus_signs(Text text) {
  static const std::regex kNegative(R"((^|[\s(])-(?=\.?[0-9]))");
  for (Span& span : text) {
    if (span.style != Style::plain || span.text.find('-') == std::string::npos) continue;
    span.text = std::regex_replace(span.text, kNegative, "$1\u2212");
  }
  return text;
}

}  // namespace

Text Sentence::marked() const {
  Text mark;
  if (self_reported) mark = mark + Text{{Style::emphasis, "Self-reported:"}, {Style::plain, " "}};
  if (smoke) mark = mark + Text{{Style::emphasis, "Smoke run:"}, {Style::plain, " "}};
  return mark + text;
}

std::vector<Sentence> sentences(const Table& table, const Brevity& brevity) {
  std::vector<Sentence> found;
  for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
    const std::string sentence = without_told(table, row, brevity);
    Text filled;
    bool complete = true;
    std::size_t done = 0;
    std::string value;  // of the last field
    while (const auto field = next_field(sentence, done)) {
      filled = filled + marked(after(value, sentence.substr(done, field->begin - done)));
      done = field->end;
      const std::string& name = field->name;
      if (!find_column(table.result, name)) {
        throw Error(ErrorKind::internal, fmt::format("sentence {}.sql wants {{{}}}, its SELECT gives {}",
                                                     table.source.id, name, fmt::join(table.result.columns, ", ")));
      }
      complete = complete && cell_of(table.result, row, name).type != store::Cell::Type::null;
      const Column column = column_of(table, name);
      filled.push_back(grid_cell(table, row, brevity.brief ? brief(column) : column).span);
      const store::Cell& found_cell = cell_of(table.result, row, name);
      if (found_cell.type == store::Cell::Type::text && found_cell.text.empty()) filled.back().text.clear();
      value = filled.back().text;
      Span& last = filled.back();
      if (brevity.brief && name == "device") last.text = short_device(std::move(last.text));
      if (brevity.brief && last.style == Style::code) last.text = short_name(std::move(last.text));
      // A text that a query has put together may name something in code.
      const bool has_code = std::ranges::count(value, '`') % 2 == 0 && value.find('`') != std::string::npos;
      if (has_code && column.format == "s") {
        filled.pop_back();
        Text named = marked(value);
        for (Span& span : named) {
          if (brevity.brief && span.style == Style::code) span.text = short_name(std::move(span.text));
          filled.push_back(std::move(span));
        }
      }
    }
    const std::string run = plain(cell_of(table.result, row, "run_uid"));
    if (!complete) continue;
    const bool has_lacks = find_column(table.result, "lacks").has_value();
    found.push_back({.text = with_minus_signs(filled + marked(after(value, sentence.substr(done)))) +
                             source_text(table.source.file),
                     .said = circumstances_of(table, row),
                     .smoke = holds_times(table.source) && contains(table.smoke_runs, run),
                     .self_reported = contains(table.self_reported, run),
                     .lacks = has_lacks && cell_of(table.result, row, "lacks").integer != 0});
  }
  return found;
}

std::optional<Sentence> best_sentence(const Table& table, Brevity& brevity, const std::vector<std::string>& gpus) {
  const std::vector<Sentence> all = sentences(table, brevity);
  if (all.empty()) return std::nullopt;
  // What was not measured here, or a smoke run's, only where there is no other, nor one that lacks something and names
  // the command for it; of the device that the part before spoke of, if it can be; then by the device, as the problem's
  // table has it.
  const auto standing = [&](std::size_t i) {
    const auto device = all[i].said.find("device");
    const auto said = brevity.said.find("device");
    const bool is_another = device != all[i].said.end() && said != brevity.said.end() && device->second != said->second;
    const auto place = device == all[i].said.end() ? gpus.begin() : std::ranges::find(gpus, device->second);
    return std::tuple(all[i].self_reported, all[i].smoke, all[i].lacks, is_another, place - gpus.begin());
  };
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (standing(i) < standing(chosen)) chosen = i;
  }
  for (const auto& [name, value] : all[chosen].said) brevity.said[name] = value;
  return all[chosen];
}

}  // namespace syslab::report
