#include "report/writers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/golden/golden.hpp"
#include "tests/report/tables.hpp"

namespace syslab::report {
namespace {

store::ResultSet odd_values() {
  store::ResultSet result;
  result.columns = {"name", "n", "x|y"};
  result.rows = {{cell("a, \"b\""), cell(1), cell(0.1)},
                 {cell(""), null(), cell(1e300)},
                 {cell("two\nlines_|"), cell(std::int64_t{-9007199254740993}), null()}};
  return result;
}

TEST(Golden, TableInEveryFormat) {
  golden::expect("report/speeds.md", write(speeds(), Format::markdown));
  golden::expect("report/speeds.csv", write(speeds(), Format::csv));
  golden::expect("report/speeds.json", write(speeds(), Format::json));
}

TEST(Golden, QueryInEveryFormat) {
  golden::expect("report/query.md", write(odd_values(), Format::markdown));
  golden::expect("report/query.csv", write(odd_values(), Format::csv));
  golden::expect("report/query.json", write(odd_values(), Format::json));
}

TEST(Golden, TableOnATerminal) {
  const std::vector<Column> header{
      {"seq", "1", "d", "right", false}, {"impl", "1", "s", "left", false}, {"time", "ms", "", "right", false}};
  golden::expect("report/aligned.txt",
                 write_aligned(header, {{"128", "naive", "1.23 ± 0.05"}, {"65536", "flash_tiled", "OOM"}}));
}

TEST(Markdown, ATableWithoutRowsSaysHowToMeasure) {
  Table table = speeds();
  table.result.rows.clear();
  table.source.command = "syslab run toy";
  EXPECT_NE(write(table, Format::markdown).find("Not measured; `syslab run toy` would tell."), std::string::npos);
  table.source.empty = "Nothing failed.";
  EXPECT_EQ(write(table, Format::markdown).find("Not measured"), std::string::npos);
  EXPECT_NE(write(table, Format::markdown).find("Nothing failed."), std::string::npos);
}

TEST(Markdown, ASmokeRunIsWrittenAboveItsNumbers) {
  Table table = speeds();
  table.warning = "Smoke run on CPU x.";
  const std::string text = write(table, Format::markdown);
  ASSERT_NE(text.find("> **Smoke run on CPU x.**"), std::string::npos);
  EXPECT_LT(text.find("Smoke run"), text.find("| seq"));
}

TEST(Json, HasNoNumberThatJsonHasNot) {
  store::ResultSet result;
  result.columns = {"x"};
  result.rows = {{cell(std::nan(""))}, {cell(INFINITY)}, {cell("\xff broken")}};
  const Json json = Json::parse(write(result, Format::json));
  EXPECT_TRUE(json[0]["x"].is_null());
  EXPECT_TRUE(json[1]["x"].is_null());
  EXPECT_EQ(json[2]["x"], "\xEF\xBF\xBD broken");
}

// --- any text survives ----------------------------------------------------------------------------------------------

// What a reader of GitHub's Markdown makes of a line of a pipe table: cells split at pipes that no backslash precedes,
// then entities, <br> and backslash escapes resolved (GFM spec, 4.10; CommonMark 2.4, 2.5).
std::vector<std::string> read_markdown_row(const std::string& line) {
  std::vector<std::string> cells(1);
  for (std::size_t i = 1; i + 1 < line.size(); ++i) {
    if (line[i] == '\\' && i + 2 < line.size()) {
      cells.back() += line.substr(i, 2);
      ++i;
    } else if (line[i] == '|') {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  for (std::string& text : cells) {
    const std::size_t first = text.find_first_not_of(' ');
    text = first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\') {
        plain += text[++i];
      } else if (text.compare(i, 4, "<br>") == 0) {
        plain += '\n';
        i += 3;
      } else if (text.compare(i, 2, "&#") == 0) {
        const std::size_t end = text.find(';', i);
        plain += static_cast<char>(std::stoi(text.substr(i + 2, end - i - 2)));
        i = end;
      } else {
        RC_ASSERT(std::string("|<>*_`[]~$").find(text[i]) == std::string::npos);  // nothing means anything unescaped
        plain += text[i];
      }
    }
    text = plain;
  }
  return cells;
}

// RFC 4180.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        rows.back().back() += '"';
        ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        rows.back().back() += c;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else if (c == '\n') {
      rows.emplace_back(1);
    } else {
      rows.back().back() += c;
    }
  }
  rows.pop_back();  // after the last line break
  return rows;
}

// Characters that formats care about come up often.
rc::Gen<std::string> any_text() {
  const auto special = rc::gen::elementOf(std::string("|\\`*_[]<>~&$#\"',; \n\r\t-=:"));
  const auto character = rc::gen::oneOf(special, rc::gen::nonZero<char>(), rc::gen::inRange('a', 'z'));
  return rc::gen::container<std::string>(character);
}

RC_GTEST_PROP(MarkdownProperty, AnyTextSurvivesItsCell, ()) {
  const std::string first = *any_text(), second = *any_text();
  store::ResultSet result;
  result.columns = {"a", "b"};
  result.rows = {{cell(first), cell(second)}};
  const std::string written = write(result, Format::markdown);
  const std::vector<std::string> lines = [&] {
    std::vector<std::string> found(1);
    for (const char c : written) c == '\n' ? found.emplace_back() : found.back() += c, void();
    return found;
  }();
  RC_ASSERT(lines.size() == 4U);  // header, rule, row, and nothing after the last line break
  const std::vector<std::string> cells = read_markdown_row(lines[2]);
  RC_ASSERT(cells.size() == 2U);
  RC_ASSERT(cells[0] == first);
  RC_ASSERT(cells[1] == second);
}

RC_GTEST_PROP(CsvProperty, AnyTextSurvivesItsField, ()) {
  const std::string first = *any_text(), second = *any_text();
  store::ResultSet result;
  result.columns = {"a", "b"};
  result.rows = {{cell(first), cell(second)}};
  const auto rows = read_csv(write(result, Format::csv));
  RC_ASSERT(rows.size() == 2U);
  RC_ASSERT(rows[1] == (std::vector<std::string>{first, second}));
}

RC_GTEST_PROP(JsonProperty, AnyAsciiTextSurvives, ()) {
  const std::string text = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
  store::ResultSet result;
  result.columns = {"a"};
  result.rows = {{cell(text)}};
  RC_ASSERT(Json::parse(write(result, Format::json))[0]["a"] == text);
}

}  // namespace
}  // namespace syslab::report
