// Stacks, areas and lanes: what is filled rather than drawn as lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ranges>
#include <regex>
#include <set>

#include "core/error.hpp"
#include "report/figure/data.hpp"
#include "report/figure/figure.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {
namespace {

constexpr const char* kAreas =
    "-- figure: areas\n-- title: Memory\n-- experiment: toy\n-- x: t|ms|linear\n-- y: live|MiB|linear\n-- series: "
    "name\n";
constexpr const char* kLanes =
    "-- figure: lanes\n-- title: Timeline\n-- experiment: toy\n-- x: t|ms|linear\n-- y: lane|1|text\n-- end: until\n"
    "-- series: name\n";
constexpr const char* kStacks =
    "-- figure: stacks\n-- title: Shares\n-- experiment: toy\n-- x: phase|1|text\n-- y: share|%|linear\n-- series: "
    "name\n";

std::string areas(const std::string& rows) {
  return kAreas + ("WITH t(t, live, name) AS (VALUES " + rows + ") SELECT * FROM t");
}
std::string lanes(const std::string& rows) {
  return kLanes + ("WITH t(t, until, lane, name) AS (VALUES " + rows + ") SELECT * FROM t");
}
std::string stacks(const std::string& rows) {
  return kStacks + ("WITH t(phase, share, name) AS (VALUES " + rows + ") SELECT * FROM t");
}

class FilledFigures : public ::testing::Test {
 protected:
  FigureData data(const std::string& text) {
    const FigureSource source = parse_figure("filled", text);
    return figure_data(source, fixture_.store().query(source.sql));
  }
  FixtureStore fixture_;
};

std::vector<std::pair<double, double>> points(const FigureSeries& series) {
  std::vector<std::pair<double, double>> all;
  for (const FigurePoint& point : series.points) all.emplace_back(point.x, point.y);
  return all;
}
using Points = std::vector<std::pair<double, double>>;

TEST_F(FilledFigures, BytesOfAToyAreDrawnInAUnitThatFits) {
  const FigureData toy = data(areas("(0, 0.5, 'weights'), (1, 0.25, 'weights')"));
  EXPECT_EQ(toy.y_label, "live (KiB)");
  EXPECT_EQ(points(toy.panels[0].series[0]), (Points{{0, 512}, {1, 256}}));
  const FigureData large = data(areas("(0, 512, 'weights'), (1, 0.25, 'weights')"));
  EXPECT_EQ(large.y_label, "live (MiB)");
}

TEST_F(FilledFigures, AnAreaKeepsItsValueUntilItChanges) {
  const FigureData found = data(areas("(0, 10, 'weights'), (1, 5, 'saved'), (3, 0, 'saved')"));
  ASSERT_EQ(found.panels.size(), 1U);
  ASSERT_EQ(found.panels[0].series.size(), 2U);
  EXPECT_EQ(points(found.panels[0].series[0]), (Points{{0, 10}, {1, 10}, {3, 10}}));
  EXPECT_EQ(points(found.panels[0].series[1]), (Points{{0, 0}, {1, 5}, {3, 0}})) << "nothing before it begins";
}

TEST_F(FilledFigures, OfSeveralChangesAtOneMomentTheLastCounts) {
  EXPECT_EQ(points(data(areas("(0, 1, 'a'), (2, 7, 'a'), (2, 3, 'a')")).panels[0].series[0]), (Points{{0, 1}, {2, 3}}));
}

TEST_F(FilledFigures, OfMoreMomentsThanCanBeSeenThePeakStays) {
  const FigureData found =
      data(std::string(kAreas) +
           "WITH RECURSIVE t(t, live, name) AS (SELECT 0, 1, 'a' UNION ALL SELECT t + 1, iif(t = 1234, 99, "
           "t % 7), 'a' FROM t WHERE t < 5000) SELECT * FROM t");
  const FigureSeries& series = found.panels[0].series[0];
  EXPECT_LE(series.points.size(), 300U);
  EXPECT_EQ(std::ranges::max(points(series) | std::views::values), 99);
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_EQ(found.notes[0], "Of 5001 moments, 300 are drawn: the highest of each stretch.");
}

TEST_F(FilledFigures, IntervalsThatNoEyeCouldTellApartAreOne) {
  const FigureData found =
      data(lanes("(0, 1000, 'phases', 'forward'), (0, 10, 'calls', 'gemm'), (10.1, 20, 'calls', 'gemm'),"
                 "(30, 40, 'calls', 'gemm'), (40, 50, 'calls', 'norm')"));
  EXPECT_EQ(found.categories, (std::vector<std::string>{"phases", "calls"}));
  const std::vector<FigureSeries>& series = found.panels[0].series;
  ASSERT_EQ(series.size(), 3U);
  ASSERT_EQ(series[1].points.size(), 2U);
  EXPECT_EQ(series[1].points[0].end, 20);
  EXPECT_EQ(series[1].points[1].x, 30);
  EXPECT_EQ(series[2].points.size(), 1U) << "of another series, however near";
}

TEST_F(FilledFigures, AnIntervalOfLessThanHalfADotIsDrawnThatWideIfItIsSeenAtAll) {
  const FigureData found =
      data(lanes("(0, 1080, 'phases', 'forward'), (500, 501, 'calls', 'gemm'), (600, 600.1, 'calls', 'gemm')"));
  const std::vector<FigurePoint>& calls = found.panels[0].series[1].points;
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_DOUBLE_EQ(calls[0].end, 502);
  EXPECT_DOUBLE_EQ(calls[1].end, 600.1) << "what nobody would see stays what it is";
}

TEST_F(FilledFigures, TwoLongIntervalsStayTwo) {
  const FigureData found =
      data(lanes("(0, 400, 'layers', 'forward'), (400.1, 800, 'layers', 'forward'),"
                 "(800.1, 1000, 'layers', 'forward')"));
  EXPECT_EQ(found.panels[0].series[0].points.size(), 3U) << "the line between two layers is seen";
}

TEST_F(FilledFigures, AnIntervalThatEndsBeforeItBeginsIsLeftOutAndTold) {
  const FigureData found = data(lanes("(5, 4, 'a', 'x'), (1, 2, 'a', 'x')"));
  EXPECT_EQ(found.panels[0].series[0].points.size(), 1U);
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_NE(found.notes[0].find("1 point outside the axes left out"), std::string::npos);
}

TEST_F(FilledFigures, WhatAllPanelsShareIsToldAndWhatDiffersHeadsThem) {
  const std::string text =
      std::string(kAreas) +
      "-- panel: pass, model, context, wire, device\n"
      "WITH t(t, live, name, pass, model, context, wire, device) AS (VALUES "
      "(0, 10, 'w', 'forward', 'xl', 512, 'own', NULL), (0, 12, 'w', 'step', 'xl', 512, 'own', NULL)) "
      "SELECT *, NULL AS run_uid FROM t";
  const FigureData found = data(text);
  EXPECT_EQ(found.common, "model xl, context 512");
  ASSERT_EQ(found.panels.size(), 2U);
  EXPECT_EQ(found.panels[1].title, "pass step");
  EXPECT_EQ(data(areas("(0, 1, 'a')")).common, "");
}

std::string refused(const std::string& text) {
  try {
    parse_figure("bad", text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ParseFilledFigure, RefusesWhatWouldMislead) {
  const auto with = [](const char* kind, const char* rest) {
    return refused("-- figure: " + std::string(kind) + "\n-- title: T\n" + rest + "SELECT 1");
  };
  EXPECT_NE(with("areas", "-- x: x|1|linear\n-- y: y|1|log10\n-- series: s\n").find("scale linear for y"),
            std::string::npos);
  EXPECT_NE(with("areas", "-- x: x|1|linear\n-- y: y|1|linear\n").find("has 'series'"), std::string::npos);
  EXPECT_NE(with("areas", "-- x: x|1|log2\n-- y: y|1|linear\n-- series: s\n").find("areas is linear"),
            std::string::npos);
  EXPECT_NE(with("stacks", "-- x: x|1|linear\n-- y: y|1|linear\n-- series: s\n").find("stand over texts"),
            std::string::npos);
  EXPECT_NE(with("lanes", "-- x: x|1|linear\n-- y: y|1|text\n").find("have an 'end'"), std::string::npos);
  EXPECT_NE(with("lines", "-- x: x|1|linear\n-- y: y|1|linear\n-- end: e\n").find("nothing else, have an 'end'"),
            std::string::npos);
  EXPECT_NE(with("lines", "-- x: x|1|linear\n-- y: y|1|text\n").find("lanes stand for texts"), std::string::npos);
}

class FilledDrawing : public FilledFigures {
 protected:
  void SetUp() override {
    if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  }
  std::string draw(const std::string& text) {
    const std::vector<FigureSource> sources{parse_figure("filled", text)};
    const Figure figure = draw_figures(sources, fixture_.store()).at(0);
    EXPECT_EQ(figure.missing, "");
    return figure.svg;
  }
};

// Relative luminance of "#rrggbb", as WCAG 2 defines it.
double luminance(const std::string& colour) {
  const auto channel = [&](std::size_t at) {
    const double value = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

std::vector<std::string> fills(const std::string& svg) {
  std::vector<std::string> found;
  const std::regex colour("fill\\s*=\\s*['\"](#[0-9a-f]{6})['\"]");
  for (auto match = std::sregex_iterator(svg.begin(), svg.end(), colour); match != std::sregex_iterator(); ++match) {
    const std::string one = (*match)[1];
    if (std::ranges::find(found, one) == found.end()) found.push_back(one);
  }
  return found;
}

const std::string kSixAreas =
    "(0, 1, 'a'), (0, 1, 'b'), (0, 1, 'c'), (0, 1, 'd'), (0, 1, 'e'), (0, 1, 'f'), (2, 2, 'a'), (2, 1, 'f'), (3, 1, "
    "'a')";

TEST_F(FilledDrawing, SixSeriesAreToldApartWithoutColours) {
  std::vector<std::string> found = fills(draw(areas(kSixAreas)));
  ASSERT_EQ(found.size(), 6U);
  std::ranges::sort(found, {}, luminance);
  for (std::size_t i = 1; i < found.size(); ++i) {
    const double contrast = (luminance(found[i]) + 0.05) / (luminance(found[i - 1]) + 0.05);
    EXPECT_GE(contrast, 1.25) << found[i - 1] << " beside " << found[i];
  }
}

TEST_F(FilledDrawing, AreasStacksAndLanesSayTheirNames) {
  const std::string memory = draw(areas(kSixAreas));
  for (const char* name : {"a", "f"})
    EXPECT_NE(memory.find("<text>" + std::string(name) + "</text>"), std::string::npos);
  const std::string shares = draw(
      stacks("('forward', 70, 'products'), ('forward', 30, 'rest'), ('step', 50, 'products'), ('step', 50, 'rest')"));
  for (const char* name : {"forward", "step", "products", "rest"}) {
    EXPECT_NE(shares.find("<text>" + std::string(name) + "</text>"), std::string::npos) << name;
  }
  const std::string timeline = draw(lanes("(0, 10, 'phases', 'forward'), (2, 3, 'calls', 'gemm')"));
  for (const char* name : {"phases", "calls", "forward", "gemm"}) {
    EXPECT_NE(timeline.find("<text>" + std::string(name) + "</text>"), std::string::npos) << name;
  }
}

// Beside each panel there was room for two dozen letters, and half of the panel was gone.
TEST_F(FilledDrawing, NamesStandOnceAndWholeBelowThePanels) {
  const std::string longest = "norm, SwiGLU, RoPE, casts and everything else";
  std::string text = stacks("('forward', 70, '" + longest +
                            "', 'one'), ('optimizer', 30, 'rest', 'one'), ('backward', 1, 'rest', "
                            "'one'), ('forward', 70, '" +
                            longest + "', 'two')");
  text.replace(text.find("t(phase, share, name)"), 21, "t(phase, share, name, panel)");
  text.replace(text.find("WITH"), 4, "-- panel: panel\nWITH");
  const std::string svg = draw(text);
  const std::string name = "<text>" + longest + "</text>";
  const std::size_t at = svg.find(name);
  ASSERT_NE(at, std::string::npos) << svg;
  EXPECT_EQ(svg.find(name, at + 1), std::string::npos) << "once";
  EXPECT_EQ(svg.find("…"), std::string::npos) << "nothing is cut";
  EXPECT_EQ(svg.find("rotate(-25"), std::string::npos) << "there is room for words under their bars";
}

TEST_F(FilledDrawing, IsTheSameToTheByteForTheSameData) { EXPECT_EQ(draw(areas(kSixAreas)), draw(areas(kSixAreas))); }

}  // namespace
}  // namespace syslab::report
