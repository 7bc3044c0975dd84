#include "report/writers/writers.hpp"

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/resources.hpp"
#include "core/text/printable.hpp"
#include "core/text/workflow_commands.hpp"
#include "report/document.hpp"
#include "report/grid.hpp"
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

// A reader of JSON knows no "\x23"; a terminal and GitHub's runner obey what is not escaped.
TEST(WriteJson, IsJsonWithoutCommandsOrInvisibleSigns) {
  store::ResultSet result;
  result.columns = {"b"};
  result.rows = {{cell("##[error]y\u202e\x7f")}};
  ::setenv("GITHUB_ACTIONS", "true", 1);
  const std::string text = write(result, Format::json);
  const std::string printed = obeyed_by_nobody(printable(text));  // as a console prints it
  ::unsetenv("GITHUB_ACTIONS");
  EXPECT_EQ(printed, text);
  EXPECT_EQ(nlohmann::json::parse(printed), nlohmann::json::parse("[{\"b\": \"##[error]y\u202e\x7f\"}]"));
}

TEST(WriteColumnNames, OfAQueryWithoutInvisibleSigns) {
  store::ResultSet result;
  result.columns = {"a\u202eb"};
  result.rows = {{cell("c")}};
  const auto is_raw = [](const std::string& text) { return text.find("\u202e") != std::string::npos; };
  for (const Format format : {Format::markdown, Format::latex, Format::html, Format::csv}) {
    EXPECT_FALSE(is_raw(write(result, format))) << static_cast<int>(format);
  }
  EXPECT_FALSE(is_raw(write_aligned(result)));
}

TEST(Golden, TableInEveryFormat) {
  golden::expect("report/speeds.md", write(speeds(), Format::markdown));
  golden::expect("report/speeds.csv", write(speeds(), Format::csv));
  golden::expect("report/speeds.json", write(speeds(), Format::json));
  golden::expect("report/speeds.tex", write(speeds(), Format::latex));
  golden::expect("report/speeds.html", write(speeds(), Format::html));
}

// Rows that ended well, all measured by one protocol with the same inputs.
Table of_one_kind() {
  Table table;
  table.source = parse_table("toy", R"(-- title: Toy
-- experiment: toy
-- columns: seq|1|d|right; bucket_mb as bucket limit?|MiB|d|right; wire?|1|code|left; noise?|1|s|left; law?|1|s|left;
--   seq_k?|1|d|right; protocol?|1|s|left; device?|1|s|left; status|1|status|left
SELECT 1)");
  table.result.columns = {"seq", "bucket_mb", "wire", "noise", "law", "seq_k", "protocol", "device", "status"};
  for (const int seq : {64, 128}) {
    table.result.rows.push_back(
        {cell(seq), cell(25), cell("bf16"), cell("contended"), null(), null(), cell("quick"), cell("CPU"), cell("ok")});
  }
  table.footnote = "CPU · protocol quick";
  return table;
}

TEST(FootOf, TellsWhatEveryRowHasInCommonAndTheFootnoteDoesNot) {
  Table table = of_one_kind();
  const std::string all = "every row: bucket limit 25 MiB, wire `bf16`, noise contended · CPU · protocol quick";
  EXPECT_EQ(foot_of(table), all);
  table.result.rows[0][5] = cell(32);
  EXPECT_NE(foot_of(table).find("contended, seq k 32 (where there is one) · "), std::string::npos) << foot_of(table);
  table.result.rows[1][8] = cell("oom");
  EXPECT_NE(foot_of(table).find("contended, seq k 32 · "), std::string::npos) << "no part of what did not end well";
  table.footnote = "another device";
  EXPECT_NE(foot_of(table).find(", protocol quick, device CPU"), std::string::npos) << foot_of(table);
}

TEST(FootOf, SaysNothingOfWhatIsShownOrNone) {
  Table table = of_one_kind();
  table.result.rows[0][3] = cell("none");
  EXPECT_EQ(foot_of(table).find("noise"), std::string::npos) << "a column of its own";
  table.result.rows[1][3] = cell("none");
  EXPECT_EQ(foot_of(table), "every row: bucket limit 25 MiB, wire `bf16` · CPU · protocol quick");
}

TEST(FootOf, IsInEveryFormatThatPeopleRead) {
  const Table table = of_one_kind();
  EXPECT_NE(write_markdown(table).find("noise contended"), std::string::npos);
  EXPECT_NE(write_html(Document{"", {table}}).find("noise contended"), std::string::npos);
  EXPECT_NE(write_tex(Document{"", {table}}).find("noise contended"), std::string::npos);
}

TEST(Golden, QueryInEveryFormat) {
  golden::expect("report/query.md", write(odd_values(), Format::markdown));
  golden::expect("report/query.csv", write(odd_values(), Format::csv));
  golden::expect("report/query.json", write(odd_values(), Format::json));
  golden::expect("report/query.tex", write(odd_values(), Format::latex));
  golden::expect("report/query.html", write(odd_values(), Format::html));
}

TEST(Golden, TableOnATerminal) {
  const std::vector<Column> header{
      {"seq", "1", "d", "right", false}, {"impl", "1", "s", "left", false}, {"time", "ms", "", "right", false}};
  golden::expect("report/aligned.txt",
                 write_aligned(header, {{"128", "naive", "1.23 ± 0.05"}, {"65536", "flash_tiled", "OOM"}}));
}

TEST(Tex, RoomForNumbersComesFromTheData) {
  store::ResultSet numbers;
  numbers.columns = {"a", "b", "c", "d"};
  numbers.rows = {{cell(-1.25), cell(1e-7), cell(128), cell("OOM")}, {cell(1000), cell(2.5), null(), cell(3)}};
  const std::string text = write(numbers, Format::latex);
  EXPECT_NE(text.find("\\begin{tabular}{S[table-format=-4.2]S[table-format=1.1e-2]S[table-format=3.0]l}"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("& 128 & {OOM} \\\\\n"), std::string::npos) << text;
  EXPECT_NE(text.find("& {NULL} & {3} \\\\\n"), std::string::npos) << "a word stands in braces: " << text;
}

TEST(Tex, KnowsSignsAndNamesWhatFontsLack) {
  EXPECT_EQ(escape_tex("2 × 3 ≤ √x · 5 µs"),
            "2 \\ensuremath{\\times} 3 \\ensuremath{\\leq} \\ensuremath{\\surd}x "
            "\\ensuremath{\\cdot} 5 \\ensuremath{\\mu}s");
  EXPECT_EQ(escape_tex("\u4e2d\x07"), "\\texttt{U+4E2D}\\texttt{U+0007}");
  EXPECT_EQ(escape_tex("\xff"), "\\texttt{U+FFFD}");
  EXPECT_EQ(escape_tex("é"), "é");
}

TEST(Tex, KnowsEverySignOfOurOwnHeaders) {
  for (const char* where : {"experiments/", "reports/tables/", "reports/figures/", "reports/deliverables.json"}) {
    for (const Resource& one : resources(where)) {
      const std::string tex = escape_tex(one.text);
      EXPECT_EQ(tex.find("\\texttt{U+"), std::string::npos)
          << one.path << ": " << tex.substr(std::min(tex.find("\\texttt{U+"), tex.size()), 20);
    }
  }
}

TEST(Tex, ANameTooLongForItsColumnMayBreakBehindItsJoints) {
  Table table = speeds();
  table.result.rows[0][1] = cell("attention.half_gradients_no_worse_than_naive");
  const std::string text = write(table, Format::latex);
  EXPECT_NE(text.find(R"({\texttt{attention.}\allowbreak{}\texttt{half\_}\allowbreak{}\texttt{gradients\_})"),
            std::string::npos)
      << text;
  EXPECT_EQ(write(speeds(), Format::latex).find("allowbreak"), std::string::npos) << "where it fits it stays whole";
}

TEST(Html, TablesScrollInABoxOfTheirOwn) {
  const auto style = find_resource("reports/page.css");
  ASSERT_TRUE(style);
  EXPECT_NE(style->find(".wide { overflow-x: auto; max-width: 100%; }"), std::string::npos);
  EXPECT_NE(write_html(Document{"A", {speeds()}}).find("<div class=\"wide\"><table>"), std::string::npos);
  EXPECT_TRUE(write(speeds(), Format::html).starts_with("<div class=\"wide\" style=\"overflow-x: auto\"><table>"))
      << "no style sheet of ours where a single table is put";
}

TEST(Html, TakesNothingFromElsewhere) {
  Document document{"A & B", {Heading{2, plain_text("<One>"), "one"}, Paragraph{marked("say `a<b`")}, speeds()}};
  const std::string page = write_html(document);
  EXPECT_EQ(page.find("http"), std::string::npos) << "a page that is read without a network";
  EXPECT_NE(page.find("<h2 id=\"one\"><a href=\"#one\">&lt;One&gt;</a></h2>"), std::string::npos);
  EXPECT_NE(page.find("<li><a href=\"#one\">&lt;One&gt;</a></li>"), std::string::npos);
  EXPECT_NE(page.find("say <code>a&lt;b</code>"), std::string::npos);
  EXPECT_EQ(page.find("{{"), std::string::npos) << "a field that was not filled in";
}

TEST(Paragraph, OfAnotherMatterBeginsALine) {
  const Document document{"A", {Paragraph{plain_text("One.") + next_line() + plain_text("Two.")}}};
  EXPECT_NE(write_markdown(document).find("\nOne.<br>Two.\n"), std::string::npos);
  EXPECT_NE(write_html(document).find("<p>One.<br>Two.</p>"), std::string::npos);
  EXPECT_NE(write_tex(document).find("\nOne.\\syslabnextline{}Two.\n"), std::string::npos);
  EXPECT_EQ(bare(std::get<Paragraph>(document.blocks.front()).text), "One. Two.");
}

TEST(Html, SortsByTheValueBehindARoundedNumber) {
  EXPECT_NE(write(speeds(), Format::html).find("<td class=\"n\" data-v=\"1.23456\">"), std::string::npos);
}

TEST(Marked, BackticksMakeCodeAndTwoTogetherAreOne) {
  const auto shown = [](const Text& text) {
    std::string out;
    for (const Span& span : text)
      out += (span.style == Style::code ? "<" : "(") + span.text + (span.style == Style::code ? ">" : ")");
    return out;
  };
  EXPECT_EQ(shown(marked("say `a b` twice: `c`")), "(say )<a b>( twice: )<c>");
  EXPECT_EQ(shown(marked("one ` alone")), "(one )(` alone)");
  EXPECT_EQ(shown(marked("a``b `c``d` e")), "(a`b )<c`d>( e)");
  for (const char* text : {"`", "``", "a`b", "`a`", "```", "", "x` `y"}) {
    EXPECT_EQ(bare(marked("<" + unmarked(text) + ">")), std::string("<") + text + ">");
  }
}

TEST(Markdown, ATableWithoutRowsSaysHowToMeasure) {
  Table table = speeds();
  table.result.rows.clear();
  table.source.command = "syslab run toy";
  EXPECT_NE(write(table, Format::markdown).find("Not measured: `syslab run toy`."), std::string::npos);
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
        const auto is_of_word = [&](std::size_t at) {
          return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
        };
        const bool within_word = text[i] == '_' && i > 0 && is_of_word(i - 1) && is_of_word(i + 1);
        // Nothing means anything unescaped; an underscore within a word does not.
        RC_ASSERT(within_word || std::string("|<>*_`[]~$").find(text[i]) == std::string::npos);
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
  RC_ASSERT(cells[0] == printable(first));
  RC_ASSERT(cells[1] == printable(second));
}

RC_GTEST_PROP(CsvProperty, AnyTextSurvivesItsField, ()) {
  const std::string first = *any_text(), second = *any_text();
  store::ResultSet result;
  result.columns = {"a", "b"};
  result.rows = {{cell(first), cell(second)}};
  const auto rows = read_csv(write(result, Format::csv));
  RC_ASSERT(rows.size() == 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string expected = printable(i == 0 ? first : second), &found = rows[1].at(i);
    RC_ASSERT(found == expected || found == "'" + expected);
    if (found.empty() || std::string_view("=+-@\t\n").find(found[0]) == std::string_view::npos) continue;
    char* end = nullptr;  // what looks like a formula is a number
    std::strtod(found.c_str(), &end);
    RC_ASSERT(end == found.c_str() + found.size());
  }
}

TEST(Csv, ATextThatASpreadsheetWouldExecuteStaysAText) {
  store::ResultSet result;
  result.columns = {"message", "=1+1"};
  result.rows = {{cell("=HYPERLINK(\"http://x\")"), cell("@SUM(1)")},
                 {cell("-cmd|' /C calc'!A1"), cell("-1.5")},
                 {cell("+1e3"), cell("a=b")},
                 {cell("\x1b[2J"), cell("\tx")}};
  EXPECT_EQ(
      write(result, Format::csv),
      "message,'=1+1\n\"'=HYPERLINK(\"\"http://x\"\")\",'@SUM(1)\n'-cmd|' /C calc'!A1,-1.5\n+1e3,a=b\n\\x1b[2J,'\tx\n");
}

// What is left of an escaped text when TeX has read it: no character that means something but in our own commands. A
// space that does not break is '~' with a meaning.
RC_GTEST_PROP(TexProperty, NothingThatMeansSomethingIsLeft, ()) {
  const std::string text = *any_text();
  RC_PRE(text.find("\u00A0") == std::string::npos);
  std::string rest = escape_tex(text);
  static const std::regex kOurs(
      R"(\\(text[a-z]+|ldots)\{\}|\\texttt\{U\+[0-9A-F]+\}|\\ensuremath\{(\^\{\\mathsf\{T\}\}|[^{}]*)\}|\{[-*,\[\]]\}|\\[#$%&_{},])");
  rest = std::regex_replace(rest, kOurs, "");
  RC_ASSERT(rest.find_first_of("\\{}$&#^_~%\"'`<>|[]*-,\n\r\t") == std::string::npos);
}

std::string read_html(std::string text) {
  for (const auto& [entity, plain] : std::initializer_list<std::pair<const char*, const char*>>{
           {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&#13;", "\r"}, {"&amp;", "&"}}) {
    for (std::size_t at = text.find(entity); at != std::string::npos; at = text.find(entity, at + 1)) {
      text.replace(at, std::strlen(entity), plain);
    }
  }
  return text;
}

RC_GTEST_PROP(HtmlProperty, AnyAsciiTextSurvivesAndMakesNoTag, ()) {
  const auto special = rc::gen::elementOf(std::string("<>&\"'; \n\r\tltgamp#39"));
  const auto character = rc::gen::oneOf(special, rc::gen::inRange<char>(32, 127));
  const std::string text = *rc::gen::container<std::string>(character);
  const std::string escaped = escape_html(text);
  RC_ASSERT(escaped.find_first_of("<>\"'\r") == std::string::npos);
  RC_ASSERT(read_html(escaped) == text);
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
