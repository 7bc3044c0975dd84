#include "report/figure/figure.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {
namespace {

constexpr const char* kHeader = "-- figure: lines\n-- title: T\n-- experiment: e\n-- x: x|1|log2\n-- y: y|ms|log10\n";

std::string fault(const std::string& text) {
  try {
    parse_figure("bad", text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    return error.what();
  }
  return "accepted";
}

TEST(ParseFigure, ReadsTheWholeHeader) {
  const FigureSource source = parse_figure("f", R"(-- figure: trace
-- title: Samples of things
-- caption: A caption that
--   goes on.
-- experiment: toy
-- x: sample|1|linear
-- y: time|ms|auto
-- x_name: axis
-- interval: low, high
-- middle: median, from, to
-- flag: flags
-- series: launch
-- panel: panel, dtype
-- ceiling: gemm|measured GEMM|syslab run ceiling_gemm; other|a line
-- note: One.
-- note: Two: with a colon.
-- optional: yes
SELECT 1)");
  EXPECT_EQ(source.kind, FigureKind::trace);
  EXPECT_EQ(source.caption, "A caption that goes on.");
  EXPECT_EQ(source.x.column, "sample");
  EXPECT_EQ(source.y.unit, "ms");
  EXPECT_EQ(source.y.scale, "auto");
  EXPECT_EQ(source.x_name, "axis");
  EXPECT_EQ(source.low, "low");
  EXPECT_EQ(source.middle_high, "to");
  EXPECT_EQ(source.flag, "flags");
  EXPECT_EQ(source.panel, (std::vector<std::string>{"panel", "dtype"}));
  ASSERT_EQ(source.ceilings.size(), 2U);
  EXPECT_EQ(source.ceilings[0].command, "syslab run ceiling_gemm");
  EXPECT_EQ(source.ceilings[1].label, "a line");
  EXPECT_EQ(source.notes, (std::vector<std::string>{"One.", "Two: with a colon."}));
  EXPECT_EQ(source.command, "syslab run {experiment}");
  EXPECT_TRUE(source.optional);
  EXPECT_EQ(source.sql, "SELECT 1");
}

TEST(ParseFigure, TakesFromTheFigureItIsLikeWhatItDoesNotSay) {
  const FigureSource other =
      parse_figure("x", std::string(*find_resource("experiments/flash_forward/figures/time.sql")));
  const FigureSource source = parse_figure("t", "-- like: flash_forward/time\n-- title: Own\n-- experiment: e\n");
  EXPECT_EQ(source.title, "Own");
  EXPECT_EQ(source.experiment, "e");
  EXPECT_EQ(source.kind, other.kind);
  EXPECT_EQ(source.caption, other.caption);
  EXPECT_EQ(source.notes, other.notes);
  EXPECT_EQ(source.sql, other.sql);
}

TEST(ParseFigure, NamesTheLineThatIsWrong) {
  const std::string header = kHeader;
  EXPECT_EQ(fault(header + "SELECT 1"), "accepted");
  EXPECT_NE(fault("-- figure: pie\nSELECT 1").find("bad.sql, line 1: unknown kind of figure 'pie'"), std::string::npos);
  EXPECT_NE(fault(header + "-- serie: a\nSELECT 1").find("line 6: unknown header 'serie'; did you mean 'series'"),
            std::string::npos);
  EXPECT_NE(fault(header + "-- interval: low\nSELECT 1").find("line 6: 'low' should read low, high"),
            std::string::npos);
  EXPECT_NE(fault("-- figure: lines\n-- x: a|1|cubic\nSELECT 1").find("line 2: unknown scale 'cubic'"),
            std::string::npos);
  EXPECT_NE(fault("-- like: flash_forward/none\n").find("there is no experiments/flash_forward/figures/none.sql"),
            std::string::npos);
  EXPECT_NE(fault("--    more\nSELECT 1").find("continuation line follows no header"), std::string::npos);
  EXPECT_NE(fault(header).find("no SELECT"), std::string::npos);
}

TEST(ParseFigure, RefusesWhatWouldMislead) {
  EXPECT_NE(fault("-- title: T\n-- x: x|1|log2\n-- y: y|1|linear\nSELECT 1").find("no 'figure'"), std::string::npos);
  EXPECT_NE(fault("-- figure: bars\n-- title: T\n-- x: x|1|text\n-- y: y|1|log10\nSELECT 1").find("y of bars"),
            std::string::npos);
  EXPECT_NE(
      fault("-- figure: bars\n-- title: T\n-- x: x|1|log2\n-- y: y|1|linear\nSELECT 1").find("bars stand over texts"),
      std::string::npos);
  EXPECT_NE(fault("-- figure: roofline\n-- title: T\n-- x: x|1|log10\n-- y: y|1|log10\nSELECT 1").find("'roof'"),
            std::string::npos);
  EXPECT_NE(fault(std::string(kHeader) + "-- flag: f\nSELECT 1").find("belong to a trace"), std::string::npos);
  EXPECT_NE(fault("-- figure: bars\n-- title: T\n-- x: x|1|text\n-- y: y|1|linear\n-- apart: a\nSELECT 1")
                .find("'apart' belongs to lines"),
            std::string::npos);
}

// Every figure that the binary carries parses, runs on an empty store, and gives the columns it names.
TEST(Figures, EveryEmbeddedOneIsWhole) {
  FixtureStore fixture;
  std::vector<FigureSource> sources;
  for (const char* prefix : {"experiments/", "reports/figures/"}) {
    for (const Resource& file : resources(prefix)) {
      if (file.path.find("/figures/") == std::string_view::npos) continue;
      sources.push_back(parse_figure(std::string(file.path), std::string(file.text)));
      if (sources.back().experiment.empty()) sources.back().experiment = "flash_forward";
    }
  }
  ASSERT_GE(sources.size(), 7U);
  for (const Figure& figure : draw_figures(sources, fixture.store())) {
    EXPECT_EQ(figure.svg, "") << figure.id;
    EXPECT_EQ(figure.missing.find("Not measured: `syslab run "), 0U) << figure.id << ": " << figure.missing;
  }
}

}  // namespace
}  // namespace syslab::report
