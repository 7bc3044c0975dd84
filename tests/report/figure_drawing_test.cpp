// What gnuplot is given and what becomes of its answer. Where there is no gnuplot these tests are skipped, but for
// those of its absence.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "report/figure/axis.hpp"
#include "report/figure/data.hpp"
#include "report/figure/figure.hpp"
#include "report/figure/gnuplot.hpp"
#include "report/figure/svg.hpp"
#include "tests/golden/golden.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {
namespace {

constexpr const char* kLines =
    "-- figure: lines\n-- title: Times\n-- experiment: toy\n-- x: seq|tokens|log2\n-- y: time|ms|log10\n"
    "-- interval: low, high\n-- series: name\n-- panel: panel\n";
constexpr const char* kColumns = "WITH t(seq, time, low, high, name, panel, status, ceiling) AS (VALUES ";

std::string lines(const std::string& rows, const std::string& header = {}) {
  return kLines + header + kColumns + rows + ") SELECT * FROM t";
}

class Drawing : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  }
  Figure draw(const std::string& text, const DrawOptions& options = {}) {
    const std::vector<FigureSource> sources{parse_figure("times", text)};
    return draw_figures(sources, fixture_.store(), options).at(0);
  }
  FixtureStore fixture_;
};

const std::string kTwoSeries =
    "(128, 1.0, 0.9, 1.1, 'naive', 'full', 'ok', 3.0), (256, 4.0, 3.9, 4.3, 'naive', 'full', 'ok', 3.0),"
    "(128, 0.5, 0.4, 0.6, 'flash', 'full', 'ok', 3.0), (256, 1.0, 0.9, 1.3, 'flash', 'full', 'ok', 3.0),"
    "(128, 0.3, 0.2, 0.4, 'flash', 'causal', 'ok', 3.0), (512, NULL, NULL, NULL, 'naive', 'full', 'oom', 3.0)";

// What may differ from one version of gnuplot to the next: how it groups, how it writes numbers.
std::string bare(const std::string& svg) {
  std::string words;
  const std::regex text("<(text|title[^>]*|desc[^>]*)>([^<]*)</");
  for (auto match = std::sregex_iterator(svg.begin(), svg.end(), text); match != std::sregex_iterator(); ++match) {
    words += (*match)[2].str() + "\n";
  }
  return words;
}

TEST_F(Drawing, SaysWhatItSaid) {
  const Figure figure = draw(lines(kTwoSeries, "-- ceiling: ceiling|a ceiling|syslab run ceiling\n"));
  EXPECT_EQ(figure.missing, "");
  golden::expect("report/figure-words.txt", bare(figure.svg));
  EXPECT_EQ(figure.notes, (std::vector<std::string>{"Not drawn: naive at seq 512 (full): OOM."}));
}

TEST_F(Drawing, IsTheSameToTheByteForTheSameData) {
  EXPECT_EQ(draw(lines(kTwoSeries)).svg, draw(lines(kTwoSeries)).svg);
  EXPECT_NE(draw(lines(kTwoSeries)).svg, draw(lines("(128, 2.0, 0.9, 1.1, 'naive', 'full', 'ok', 3.0)")).svg);
}

TEST_F(Drawing, FitsIntoAPageOfAnyColour) {
  const std::string svg = draw(lines(kTwoSeries)).svg;
  EXPECT_EQ(svg.rfind("<svg ", 0), 0U);
  EXPECT_NE(svg.find("role=\"img\""), std::string::npos);
  EXPECT_NE(svg.find("<title id=\"figure-toy-times-title\">Times</title>"), std::string::npos);
  EXPECT_NE(svg.find("<text>naive</text>"), std::string::npos) << "labels are text, not outlines";
  EXPECT_NE(svg.find("stroke='currentColor'"), std::string::npos);
  for (const char* unwanted : {"rgb(", "color=\"black\"", "'white'", "gnuplot", "Gnuplot", "gpPt", "<?xml"}) {
    EXPECT_EQ(svg.find(unwanted), std::string::npos) << unwanted;
  }
}

TEST_F(Drawing, DrawsThePdfWhenAsked) {
  EXPECT_EQ(draw(lines(kTwoSeries)).pdf, "");
  EXPECT_EQ(draw(lines(kTwoSeries), {.pdf = true}).pdf.rfind("%PDF-", 0), 0U);
}

TEST_F(Drawing, ShowsAHostileLabelAsItIsAndRunsNothing) {
  const std::filesystem::path planted = std::filesystem::temp_directory_path() / "syslab-figure-was-run";
  std::filesystem::remove(planted);
  const std::vector<std::pair<std::string, std::string>> labels{
      {"it''s `touch " + planted.string() + "`", "it's `touch " + planted.string() + "`"},
      {"$(touch " + planted.string() + ")", "$(touch " + planted.string() + ")"},
      {"a_b^c{d}@e&f", "a_b^c{d}@e&amp;f"},
      {"\"<b>\\n%d %s", "\"&lt;b>\\n%d %s"},
      {"'' ; ! touch x; ''", "' ; ! touch x; '"},
      {"EOD", "EOD"},
      {"rgb(1,2,3)", "rgb(1,2,3)"},
  };
  for (const auto& [sql, shown] : labels) {
    const std::string row =
        "(128, 1.0, 0.9, 1.1, '" + sql + "', 'one', 'ok', 1), (128, 1.0, 0.9, 1.1, 'other', '" + sql + "', 'ok', 1)";
    const Figure figure = draw(lines(row), {.pdf = true});
    EXPECT_EQ(figure.missing, "") << sql;
    // The panel is too narrow for the longer ones: their beginning must be there.
    EXPECT_NE(figure.svg.find(shown.substr(0, 15)), std::string::npos) << sql << "\n" << bare(figure.svg);
  }
  const Figure lines_apart =
      draw(lines("(128, 1, 0.9, 1.1, 'a' || char(10) || 'set output', 'p', 'ok', 1), (128, 1, 1, 1, 'b', 'p' || "
                 "char(7), 'ok', 1)"));
  EXPECT_NE(lines_apart.svg.find("<text>a set output</text>"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(planted)) << "a label was run";
}

TEST_F(Drawing, OfOnePointHasAScaleAroundIt) {
  const Figure figure = draw(lines("(128, 1.0, 1.0, 1.0, 'a', 'p', 'ok', 1)"));
  EXPECT_EQ(figure.missing, "");
  EXPECT_EQ(figure.svg.find("nan"), std::string::npos);
  EXPECT_NE(figure.svg.find("<text>128</text>"), std::string::npos) << bare(figure.svg);
}

TEST_F(Drawing, LeavesOutWhatIsNoNumberAndSaysSo) {
  const Figure figure =
      draw(lines("(128, 9e999, 1.0, 1.0, 'a', 'p', 'ok', 1), (256, 0, 0, 0, 'a', 'p', 'ok', 1),"
                 "(512, -1, -2, 0, 'a', 'p', 'ok', 1), (1024, 'text', 0, 0, 'a', 'p', 'ok', 1), (2048, 1, 1, 1, 'a', "
                 "'p', 'ok', 1)"));
  EXPECT_EQ(figure.missing, "");
  EXPECT_EQ(figure.notes, (std::vector<std::string>{"4 points outside the axes left out."}));
}

TEST_F(Drawing, OfNumbersAtTheEndsOfTheirRangeEndsWell) {
  const Figure figure =
      draw(lines("(1, 1e-310, 1e-310, 1e-310, 'a', 'p', 'ok', 1), (1e300, 1e308, 1, 1.7e308, 'a', 'p', 'ok', 1)"),
           {.pdf = true});
  EXPECT_EQ(figure.missing, "");
}

TEST_F(Drawing, OfTenThousandSamplesStaysSmall) {
  const Figure figure = draw(
      "-- figure: trace\n-- title: Samples\n-- experiment: toy\n-- x: i|1|linear\n-- y: time|ms|auto\n"
      "-- middle: median, low, high\n-- flag: flag\n"
      "WITH RECURSIVE s(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM s WHERE i < 9999) "
      "SELECT i, 1.0 + (i * 7919 % 1000) / 5000.0 AS time, 1.1 AS median, 1.09 AS low, 1.11 AS high, i = 5000 AS flag "
      "FROM s");
  EXPECT_EQ(figure.missing, "");
  EXPECT_LT(figure.svg.size(), 60'000U);
  EXPECT_EQ(figure.notes,
            (std::vector<std::string>{"10000 samples are drawn as 300 ranges from their smallest to their largest."}));
}

TEST_F(Drawing, OfMoreThanAnyoneCanReadSaysWhatIsLeftOut) {
  const Figure figure = draw(
      "-- figure: lines\n-- title: Many\n-- experiment: toy\n-- x: x|1|linear\n-- y: y|1|linear\n-- series: s\n-- "
      "panel: p\n"
      "WITH RECURSIVE s(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM s WHERE i < 399) "
      "SELECT i AS x, i AS y, 'series ' || (i / 20) AS s, 'panel ' || (i % 20) AS p FROM s");
  ASSERT_EQ(figure.notes.size(), 2U);
  EXPECT_EQ(figure.notes[0].find("8 further series"), 0U) << figure.notes[0];
  EXPECT_EQ(figure.notes[1].find("12 further panels"), 0U) << figure.notes[1];
}

TEST_F(Drawing, BreaksALongTitleOfAPanelBetweenItsParts) {
  const std::string title = "mask causal, dtype bf16, head_dim 128, batch 16, heads 32, protocol do_bench, device ";
  const Figure figure =
      draw(lines("(128, 1, 1, 1, 'a', '" + title + "one', 'ok', 1), (128, 1, 1, 1, 'a', '" + title + "two', 'ok', 1)"));
  const std::string words = bare(figure.svg);
  for (const char* part : {"mask causal, dtype bf16", "protocol do_bench", "device one\n", "device two\n"}) {
    EXPECT_NE(words.find(part), std::string::npos) << part << " in\n" << words;
  }
}

TEST_F(Drawing, OfLongNamesBesideNarrowPanelsHasThemWholeBelow) {
  const std::string longest = "an implementation of somebody (self-reported)";
  const std::string one = ", 1.0, 0.9, 1.1, '" + longest + "', ";
  const Figure two = draw(lines("(128" + one + "'left', 'ok', 1), (256" + one + "'right', 'ok', 1)"));
  const std::size_t at = two.svg.find("<text>" + longest + "</text>");
  ASSERT_NE(at, std::string::npos) << bare(two.svg);
  EXPECT_EQ(two.svg.find("<text>" + longest + "</text>", at + 1), std::string::npos) << "once";
  const Figure alone = draw(lines("(128, 1.0, 0.9, 1.1, 'thirty letters are no hardship', 'p', 'ok', 1)"));
  EXPECT_NE(bare(alone.svg).find("thirty letters are no hardship"), std::string::npos) << bare(alone.svg);
}

// A step that keeps everything is no segment of 0 blocks.
TEST_F(Drawing, WhatStandsApartIsNamedBesideTheAxisAndOnNoLine) {
  const std::string text =
      "-- figure: lines\n-- title: Steps\n-- experiment: toy\n-- x: k|blocks|log2\n-- y: time|ms|linear\n-- apart: "
      "kept\n"
      "-- series: name\nWITH t(k, kept, time, name) AS (VALUES (0.0, 'all kept', 5, 'host'), (0.5, '', 7, 'host'), "
      "(1.0, '', 6, 'host'), (2.0, '', 8, 'host')) SELECT * FROM t";
  const FigureSource source = parse_figure("steps", text);
  const FigureData data = figure_data(source, fixture_.store().query(source.sql));
  EXPECT_EQ(data.apart, (std::vector<std::string>{"all kept"}));
  EXPECT_TRUE(data.notes.empty()) << data.notes.front();
  ASSERT_EQ(data.panels.at(0).series.at(0).points.size(), 4U);
  EXPECT_TRUE(data.panels[0].series[0].points[0].apart);
  const Figure figure = draw(text);
  EXPECT_EQ(figure.missing, "");
  const std::string words = bare(figure.svg);
  for (const char* word : {"all kept\n", "\n0.5\n", "\n1\n", "\n2\n"})
    EXPECT_NE(words.find(word), std::string::npos) << words;
  EXPECT_EQ(words.find("0.0"), std::string::npos) << words;
}

TEST_F(Drawing, OfBarsHasAGroupForEachWord) {
  const Figure figure = draw(
      "-- figure: bars\n-- title: Bars\n-- experiment: toy\n-- x: model|1|text\n-- y: time|ms|linear\n-- series: s\n-- "
      "interval: l, h\n"
      "WITH t(model, time, s, l, h) AS (VALUES ('small', 1, 'fwd', 0.9, 1.1), ('small', 2, 'bwd', 1.9, 2.1), "
      "('large_with a long <name>', 3, 'fwd', 2, 4)) SELECT * FROM t");
  EXPECT_EQ(figure.missing, "");
  for (const char* word : {"small", "fwd", "bwd"}) EXPECT_NE(bare(figure.svg).find(word), std::string::npos) << word;
  EXPECT_NE(bare(figure.svg).find("large_with a long &lt;nam"), std::string::npos) << bare(figure.svg);
}

TEST_F(Drawing, OfARooflineFollowsTheSmallerOfBothCeilings) {
  const Figure figure = draw(
      "-- figure: roofline\n-- title: Roof\n-- experiment: toy\n-- x: intensity|FLOP/B|log10\n-- y: "
      "rate|TFLOP/s|log10\n"
      "-- roof: copy|gemm\nSELECT 10.0 AS intensity, 0.05 AS rate, 20.0 AS copy, 0.1 AS gemm");
  EXPECT_EQ(figure.missing, "");
  EXPECT_NE(bare(figure.svg).find("roof 20 GB/s, 0.1 TFLOP/s"), std::string::npos);
  EXPECT_DOUBLE_EQ(under({20, 0.1}, 1), 0.02);
  EXPECT_DOUBLE_EQ(under({20, 0.1}, 100), 0.1);
}

TEST_F(Drawing, ThatTakesTooLongIsEnded) {
  const std::filesystem::path script = std::filesystem::temp_directory_path() / "syslab-figure-slow.gp";
  std::ofstream(script) << "pause 60\n";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run_gnuplot("gnuplot", script, std::chrono::milliseconds(300)),
            "gnuplot took longer than 300 ms and was ended");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  std::filesystem::remove(script);
}

TEST_F(Drawing, ThatFailsSaysWhy) {
  const std::filesystem::path script = std::filesystem::temp_directory_path() / "syslab-figure-bad.gp";
  std::ofstream(script) << "plot nonsense\n";
  const std::string why = run_gnuplot("gnuplot", script, std::chrono::seconds(20));
  EXPECT_EQ(why.find("gnuplot ended with exit code"), 0U) << why;
  EXPECT_NE(why.find("nonsense"), std::string::npos) << why;
  std::filesystem::remove(script);
}

TEST(WithoutGnuplot, TheReasonStandsInThePicturesPlace) {
  FixtureStore fixture;
  const std::vector<FigureSource> sources{parse_figure("times", lines(kTwoSeries))};
  const Figure figure = draw_figures(sources, fixture.store(), {.gnuplot = "no-such-gnuplot"}).at(0);
  EXPECT_EQ(figure.svg, "");
  EXPECT_NE(figure.missing.find("no-such-gnuplot"), std::string::npos) << figure.missing;
  EXPECT_NE(figure.missing.find("gnuplot-nox"), std::string::npos) << figure.missing;
}

TEST(WithoutARow, AFigureSaysWhatWouldMeasureItUnlessItIsOptional) {
  FixtureStore fixture;
  const std::string none = "SELECT 1 AS seq, 1 AS time, 1 AS low, 1 AS high, '' AS name, '' AS panel WHERE 0";
  std::vector<FigureSource> sources{parse_figure("a", kLines + none),
                                    parse_figure("b", std::string(kLines) + "-- optional: yes\n" + none),
                                    parse_figure("c", std::string(kLines) + "-- empty: Nothing failed.\n" + none)};
  const std::vector<Figure> figures = draw_figures(sources, fixture.store(), {.gnuplot = "no-such-gnuplot"});
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(figures[0].missing, "Not measured: `syslab run toy`.");
  EXPECT_EQ(figures[1].missing, "Nothing failed.");
}

TEST(FigureAxis, PlacesItsEndsAndHoldsItsValues) {
  const std::vector<double> values{128, 256, 4096};
  const Axis axis = make_axis("log2", values, false, 8);
  EXPECT_DOUBLE_EQ(axis.place(axis.low), 0);
  EXPECT_DOUBLE_EQ(axis.place(axis.high), 1);
  EXPECT_LT(axis.low, 128);
  EXPECT_GT(axis.high, 4096);
  EXPECT_NEAR(axis.place(724.0773), 0.5, 1e-4);  // the geometric middle
}

// Low panels have room for three labels: fewer decades are labelled, not the top one linearly.
TEST(FigureAxis, OfManyDecadesHasLabelsFromEndToEnd) {
  for (const auto& [low, high] : {std::pair{0.0396, 187.0}, {0.5, 2e4}, {1e-7, 1.0}, {0.02, 9e3}}) {
    const std::array<double, 2> values{low, high};
    for (const int most : {2, 3, 4, 6}) {
      const Axis axis = make_axis("log10", values, false, most);
      std::vector<double> places;
      for (const Tic& tic : axis.tics) {
        if (!tic.label.empty()) places.push_back(axis.place(tic.at));
      }
      ASSERT_GE(places.size(), 2U) << low << " " << most;
      EXPECT_LE(places.size(), static_cast<std::size_t>(most)) << low << " " << most;
      EXPECT_LT(places.front(), 0.4) << low << " " << most;
      EXPECT_GT(places.back(), 0.5) << low << " " << most;
    }
  }
}

TEST(FigureAxis, OfWholeNumbersHasWholeLabels) {
  for (const std::vector<double>& values : {std::vector<double>{1, 2, 3}, {1, 2}, {0, 4}}) {
    for (const Tic& tic : make_axis("linear", values, false, 10).tics) {
      EXPECT_EQ(tic.at, std::floor(tic.at)) << tic.label;
      EXPECT_EQ(tic.label.find('.'), std::string::npos) << tic.label;
    }
  }
  const std::vector<double> fractions{0.5, 2};
  EXPECT_GT(make_axis("linear", fractions, false, 6).tics.size(), 3U);
}

TEST(FigureAxis, MakesRoomBesideIt) {
  for (const char* scale : {"log2", "linear"}) {
    const std::vector<double> values{0.5, 8};
    Axis axis = make_axis(scale, values, false, 6);
    const double began = axis.low;
    const std::vector<std::string> texts{"all kept", "none"};
    const std::vector<double> places = make_room_beside(axis, texts, 60, 600);
    ASSERT_EQ(places.size(), 2U);
    EXPECT_NEAR(axis.place(places[0]), 0.05, 1e-9) << scale;
    EXPECT_NEAR(axis.place(places[1]), 0.15, 1e-9) << scale;
    EXPECT_NEAR(axis.place(began), 0.2, 1e-9) << scale;
    EXPECT_EQ(axis.tics[0].label, "all kept");
  }
}

TEST(FigureAxis, LabelsAreFewAndToldApart) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {1e-9, 1e9}, {1, 1.001}, {0.9, 1.1}, {5, 5}, {1, 3}, {0.02, 0.7}, {1e-300, 1e300}, {1e12, 1.00001e12}}) {
    for (const char* scale : {"log10", "log2", "linear", "auto"}) {
      const std::vector<double> values{low, high};
      const Axis axis = make_axis(scale, values, false, 6);
      std::set<std::string> labels;
      int count = 0;
      for (const Tic& tic : axis.tics) {
        EXPECT_GE(tic.at, axis.low * (1 - 1e-9));
        EXPECT_LE(tic.at, axis.high * (1 + 1e-9));
        if (tic.label.empty()) continue;
        labels.insert(tic.label);
        ++count;
      }
      EXPECT_GE(count, 1) << scale << " " << low << " … " << high;
      EXPECT_LE(count, 13) << scale << " " << low << " … " << high;
      EXPECT_EQ(labels.size(), static_cast<std::size_t>(count)) << scale << " " << low << " … " << high;
    }
  }
}

TEST(EscapeXml, LeavesNoMarkupAndNoControl) {
  EXPECT_EQ(escape_xml("a<b>&\"\x01\n"), "a&lt;b&gt;&amp;&quot;\xEF\xBF\xBD\n");
}

}  // namespace
}  // namespace syslab::report
