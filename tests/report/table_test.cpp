#include "report/table.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "tests/report/fixture.hpp"
#include "tests/report/tables.hpp"

namespace syslab::report {
namespace {

constexpr const char* kHeader = "-- title: T\n-- experiment: e\n-- columns: a|ms|d|right\n";

std::string fault(const std::string& text) {
  try {
    parse_table("bad", text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    return error.what();
  }
  return "accepted";
}

TEST(ParseTable, ReadsTheWholeHeader) {
  const TableSource source = parse_table("t", R"(-- title: Speeds of things
-- caption: A caption that
--   goes on.
-- about time, a: One of two
--   columns: times.
-- experiment: toy
-- columns: a|1|d|right; time?|ms|ci(low, high)|right;
--   name|1|code|left
-- note: One.
-- note: Two: with a colon.
-- command: syslab run toy
-- empty: None.

SELECT a, -- what it is
       time
  FROM x;
)");
  EXPECT_EQ(source.id, "t");
  EXPECT_EQ(source.title, "Speeds of things");
  EXPECT_EQ(source.caption, "A caption that goes on.");
  ASSERT_EQ(source.about.size(), 1U);
  EXPECT_EQ(source.about[0].columns, (std::vector<std::string>{"time", "a"}));
  EXPECT_EQ(whole_caption(source), "A caption that goes on. One of two columns: times.");
  EXPECT_EQ(source.experiment, "toy");
  ASSERT_EQ(source.columns.size(), 3U);
  EXPECT_EQ(source.columns[1].name, "time");
  EXPECT_TRUE(source.columns[1].only_if_varies);
  EXPECT_EQ(source.columns[1].unit, "ms");
  EXPECT_EQ(source.columns[1].format, "ci(low, high)");
  EXPECT_EQ(source.columns[2].align, "left");
  EXPECT_EQ(source.notes, (std::vector<std::string>{"One.", "Two: with a colon."}));
  EXPECT_EQ(source.command, "syslab run toy");
  EXPECT_EQ(source.empty, "None.");
  EXPECT_EQ(source.sql, "SELECT a, -- what it is\n       time\n  FROM x;");
}

TEST(ParseTable, TakesFromTheTableItIsLikeWhatItDoesNotSay) {
  const TableSource other =
      parse_table("x", std::string(*find_resource("experiments/naive_ddp_benchmarking/tables/steps.sql")));
  const TableSource source =
      parse_table("t", "-- like: naive_ddp_benchmarking/steps\n-- title: Own\n-- experiment: e\n-- note: Own.\n");
  EXPECT_EQ(source.title, "Own");
  EXPECT_EQ(source.experiment, "e");
  EXPECT_EQ(source.notes, std::vector<std::string>{"Own."});
  EXPECT_EQ(source.caption, other.caption);
  EXPECT_FALSE(other.about.empty());
  EXPECT_EQ(whole_caption(source), whole_caption(other));
  EXPECT_EQ(source.columns.size(), other.columns.size());
  EXPECT_EQ(source.sql, other.sql);
}

TEST(ParseTable, TakesTheSentencesOfACaptionTogether) {
  const std::string header = "-- like: naive_ddp_benchmarking/steps\n-- title: Own\n-- experiment: e\n";
  EXPECT_EQ(whole_caption(parse_table("t", header + "-- caption: Own.\n")), "Own.");
  const TableSource source = parse_table("t", header + "-- about exposed: Own.\n");
  ASSERT_EQ(source.about.size(), 1U);
  EXPECT_EQ(source.about[0].text, "Own.");
}

TEST(ParseTable, NamesAColumnThatIsExplainedAndIsNotThere) {
  const auto of = [](const std::string& line) {
    return fault("-- title: T\n-- experiment: e\n-- " + line +
                 "\n-- columns: size|1|d|right; vs_naive as vs naive|1|d|right\nSELECT 1");
  };
  EXPECT_EQ(of("about vs_naive: It is faster."), "accepted");
  EXPECT_NE(of("about vs naive: It is faster.").find("line 3: unknown column 'vs naive'"), std::string::npos)
      << "a heading is no name";
  EXPECT_NE(of("about size, sizes: Tokens.").find("unknown column 'sizes'; did you mean 'size'?"), std::string::npos);
  EXPECT_NE(of("about size, size: Tokens.").find("line 3: 'size' is named twice"), std::string::npos);
  EXPECT_NE(of("about: Tokens.").find("line 3: a sentence reads 'about COLUMN"), std::string::npos);
  EXPECT_NE(of("about size,: Tokens.").find("line 3: a sentence reads 'about COLUMN"), std::string::npos);
  EXPECT_NE(of("about size: Tokens").find("line 3: the sentence ends with a full stop"), std::string::npos);
}

TEST(ParseTable, NamesWhatALikeDoesNotFindAndASelectBesideIt) {
  EXPECT_NE(fault("-- like: naive_ddp_benchmarking/none\n")
                .find("there is no experiments/naive_ddp_benchmarking/tables/none.sql"),
            std::string::npos);
  EXPECT_NE(fault("-- like: steps\n").find("experiment/name"), std::string::npos);
  EXPECT_NE(fault("-- like: naive_ddp_benchmarking/steps\nSELECT 1").find("line 1: a SELECT stands"),
            std::string::npos);
}

TEST(ParseTable, BeginsWithTheNamesOfAnotherTablesQuery) {
  const std::string header =
      "-- with: memory_profiling/largest\n-- sentence: {a}\n-- experiment: e\n-- columns: a|1|s|left\n";
  const std::string whole =
      parse_table("x", std::string(*find_resource("experiments/memory_profiling/tables/largest.sql"))).sql;
  const std::string names = whole.substr(0, whole.find("\nSELECT "));
  EXPECT_EQ(parse_table("t", header + "SELECT a FROM ranked\n").sql, names + "\nSELECT a FROM ranked");
  EXPECT_EQ(parse_table("t", header + "more AS (SELECT 1)\nSELECT a FROM more").sql,
            names + ",\nmore AS (SELECT 1)\nSELECT a FROM more");
  EXPECT_NE(fault(header).find("no SELECT"), std::string::npos);
  EXPECT_NE(fault("-- with: memory_profiling/none\nSELECT 1")
                .find("there is no experiments/memory_profiling/tables/none.sql"),
            std::string::npos);
  EXPECT_NE(fault("-- with: naive_ddp/laws\nSELECT 1").find("there is no"), std::string::npos);
  EXPECT_NE(fault("-- with: weighted_sum/weighted_sum\nSELECT 1").find("has no WITH"), std::string::npos);
}

TEST(ParseTable, ReadsHeadingsAndSharedLists) {
  const TableSource source = parse_table(
      "t", "-- title: T\n-- experiment: e\n-- columns: seq|1|d|right; @timed; gbps as rate?|GB/s|.3g|right\nSELECT 1");
  ASSERT_EQ(source.columns.size(), 4U);
  EXPECT_EQ(source.columns[1].name, "implementation");
  EXPECT_EQ(source.columns[2].name, "time_ms");
  EXPECT_EQ(source.columns[2].heading(), "time");
  EXPECT_EQ(source.columns[3].name, "gbps");
  EXPECT_EQ(source.columns[3].heading(), "rate");
  EXPECT_TRUE(source.columns[3].only_if_varies);
  EXPECT_EQ(source.columns[0].heading(), "seq");
  EXPECT_NE(fault("-- columns: @nobody\nSELECT 1").find("has no list 'nobody'"), std::string::npos);
}

TEST(ParseTable, NamesTheLineThatIsWrong) {
  EXPECT_NE(fault("-- title: T\n-- colour: red\nSELECT 1").find("line 2: unknown header 'colour'"), std::string::npos);
  EXPECT_NE(fault("-- title: T\n-- columns: a|1|d\nSELECT 1").find("line 2: column 'a|1|d' has 3 fields"),
            std::string::npos);
  EXPECT_NE(fault("-- columns: a|1|q|left\nSELECT 1").find("line 1: unknown format 'q'"), std::string::npos);
  EXPECT_NE(fault("-- columns: a|1|d|middle\nSELECT 1").find("align is left or right"), std::string::npos);
  EXPECT_NE(fault("-- columns: a||d|left\nSELECT 1").find("needs a name and a unit"), std::string::npos);
  EXPECT_NE(fault("-- just words\nSELECT 1").find("line 1: a header line reads"), std::string::npos);
  EXPECT_NE(fault("--    more\nSELECT 1").find("continuation line follows no header"), std::string::npos);
}

TEST(ParseTable, KnowsEveryFormatAndNoOther) {
  const auto of = [](const std::string& format) {
    return fault("-- title: T\n-- experiment: e\n-- columns: a|ms|" + format + "|right\nSELECT 1");
  };
  for (const char* format : {"d", "s", "code", "flag", "status", "outcome", "uid", ".3g", ".12f", ".1e", ".4b",
                             "ci(low, high)", "ratio(low,high)"}) {
    EXPECT_EQ(of(format), "accepted") << format;
  }
  for (const char* format : {"dd",        "D",         "g",      "3g",       ".g",        ".3",       ".3x",
                             ".3gg",      ".-3g",      ".3 g",   "ci",       "ci()",      "ci(low)",  "ci(low,)",
                             "ci(,high)", "ci(a,b,c)", "ci(a,b", "ci(a,b)x", "ci((a),b)", "mean(a,b)"}) {
    EXPECT_NE(of(format).find(std::string("unknown format '") + format + "'"), std::string::npos) << format;
  }
}

TEST(ParseTable, WantsAWholeHeader) {
  EXPECT_EQ(fault(std::string(kHeader) + "SELECT 1"), "accepted");
  EXPECT_NE(fault(kHeader).find("no SELECT"), std::string::npos);
  EXPECT_NE(fault("-- title: T\n-- columns: a|1|d|left\nSELECT 1").find("no 'experiment'"), std::string::npos);
  EXPECT_NE(fault("-- experiment: e\n-- columns: a|1|d|left\nSELECT 1").find("title or a sentence"), std::string::npos);
  EXPECT_NE(fault("-- title: T\n-- sentence: S\n-- experiment: e\nSELECT 1").find("title or a sentence"),
            std::string::npos);
  EXPECT_NE(fault("-- title: T\n-- experiment: e\nSELECT 1").find("no 'columns'"), std::string::npos);
}

Table sentence() {
  Table table;
  table.source = parse_table("s",
                             "-- sentence: `flash` is {ratio} times as fast as {other}.\n-- experiment: toy\n"
                             "-- columns: ratio|1|.2g|left; other|1|code|left\n-- command: syslab run toy\n"
                             "SELECT 1");
  table.result.columns = {"ratio", "other"};
  return table;
}

TEST(Sentence, TakesValuesFromTheQuery) {
  Table table = sentence();
  table.result.rows = {{cell(3.14159), cell("naive_kernel")}, {cell(2), cell("x|y")}};
  EXPECT_EQ(write_sentences(table),
            "- `flash` is 3.1 times as fast as `naive_kernel`.\n"
            "- `flash` is 2.0 times as fast as `x|y`.\n");
}

TEST(Sentence, BracesAroundNoNameAreText) {
  Table table = sentence();
  table.source.sentence = "{ratio}{other}: {} {a b} {{ratio}} {other";
  table.result.rows = {{cell(2), cell("x")}};
  EXPECT_EQ(write_sentences(table), "- 2.0`x`: {} {a b} {2.0} {other\n");
}

TEST(Sentence, ANegativeNumberHasAMinusAndAHyphenStays) {
  Table table = sentence();
  table.source.sentence = "{ratio} (-0.9 to -3 %, T-1, pages 4-5): `run -1` of {other}";
  table.result.rows = {{cell(-2), cell("x-1")}};
  EXPECT_EQ(write_sentences(table), "- −2.0 (−0.9 to −3 %, T-1, pages 4-5): `run -1` of `x-1`\n");
}

TEST(Sentence, WhatWasAskedForStandsOut) {
  Table table;
  table.source = parse_table("s",
                             "-- sentence: From {tokens} tokens on.\n-- experiment: toy\n"
                             "-- columns: tokens|1|strong|right\nSELECT 1");
  table.result.columns = {"tokens"};
  table.result.rows = {{cell("20,445")}};
  EXPECT_EQ(write_sentences(table), "- From **20,445** tokens on.\n");
}

TEST(Sentence, CountsOneThingInTheSingular) {
  Table table = sentence();
  table.source = parse_table("s",
                             "-- sentence: segments of {ratio} blocks hold {other} bytes\n-- experiment: toy\n"
                             "-- columns: ratio|1|s|left; other|1|d|left\nSELECT 1");
  table.result.rows = {{cell("1"), cell(1)}, {cell("0.5"), cell(11)}, {cell("2"), cell(0)}};
  EXPECT_EQ(write_sentences(table),
            "- segments of 1 block hold 1 byte\n- segments of 0.5 blocks hold 11 bytes\n"
            "- segments of 2 blocks hold 0 bytes\n");
}

TEST(Sentence, SaysNotMeasuredWithTheCommandThatWould) {
  Table table = sentence();
  EXPECT_EQ(write_sentences(table), "- Not measured: `syslab run toy`.\n");
  table.result.rows = {{null(), cell("naive")}};
  EXPECT_EQ(write_sentences(table), "- Not measured: `syslab run toy`.\n");
}

TEST(Sentence, RefusesAFieldThatTheQueryDoesNotGive) {
  Table table = sentence();
  table.result.columns = {"ratio", "peer"};
  table.result.rows = {{cell(1.0), cell("naive")}};
  EXPECT_THROW(write_sentences(table), Error);
}

TEST(Fill, NamesAColumnThatTheQueryDoesNotGive) {
  FixtureStore fixture;
  const TableSource source =
      parse_table("bad", "-- title: T\n-- experiment: e\n-- columns: time|ms|d|right\nSELECT 1 AS tiem");
  try {
    fill(source, fixture.store());
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("declares the column 'time', its SELECT gives tiem"), std::string::npos)
        << error.what();
  }
}

TEST(Fill, NamesTheEndOfAnIntervalThatTheQueryDoesNotGive) {
  FixtureStore fixture;
  const auto said = [&](const std::string& columns, const std::string& query) -> std::string {
    try {
      fill(parse_table("bad", "-- title: T\n-- experiment: e\n-- columns: " + columns + "\n" + query), fixture.store());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string query = "SELECT 1.5 AS time, 1.0 AS low";
  EXPECT_EQ(said("time|ms|ci(low, high)|right", query),
            "table bad.sql declares the column 'time' with an interval of which 'high' is an end, its SELECT gives "
            "time, low");
  EXPECT_NE(said("time|1|ratio(lo, low)|right", query).find("'lo' is an end"), std::string::npos);
  EXPECT_EQ(said("time|ms|ci(low, high)|right", query + ", 2.0 AS high"), "");
}

}  // namespace
}  // namespace syslab::report
