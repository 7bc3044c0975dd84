#include "report/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "report/provenance.hpp"
#include "tests/golden/golden.hpp"
#include "tests/report/fixture.hpp"

namespace syslab::report {
namespace {

// What differs from one run of the test to the next: identities of checks, and when a run began.
std::string steady(std::string text) {
  text = std::regex_replace(text, std::regex("`(?!01900000)[0-9a-f]{8}-[0-9a-f]{4}`"), "`CHECK`");
  return std::regex_replace(text, std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d)"), "DATE TIME");
}

Table filled(FixtureStore& fixture, const std::string& path, const std::string& experiment = {}) {
  const auto text = find_resource(path);
  if (!text) throw std::runtime_error("no resource " + path);
  const std::size_t slash = path.rfind('/');
  const TableSource source = parse_table(path.substr(slash + 1, path.size() - slash - 5), std::string(*text));
  return fill(source, fixture.store(), experiment);
}

TEST(Report, OfAFullStoreIsWhatItWas) {
  FixtureStore fixture;
  fixture.add_smoke_run();
  fixture.add_kernel_run();
  fixture.add_law_run();
  golden::expect("report/report.md", steady(render(fixture_registry(), fixture.store(), {})));
}

TEST(Report, OfAnEmptyStoreSaysHowToMeasureEverything) {
  FixtureStore fixture;
  const std::string text = render(fixture_registry(), fixture.store(), {});
  golden::expect("report/empty.md", text);
  EXPECT_NE(text.find("Not measured; `syslab run flash_forward` would tell."), std::string::npos);
  EXPECT_NE(text.find("Not measured; `syslab check flash_forward` would tell."), std::string::npos);
}

TEST(Report, LeavesOutSelftestsUnlessTheyAreNamed) {
  FixtureStore fixture;
  EXPECT_EQ(render(fixture_registry(), fixture.store(), {}).find("selftest_empty"), std::string::npos);
  ReportOptions options;
  options.experiments = {"selftest_empty"};
  const std::string text = render(fixture_registry(), fixture.store(), options);
  EXPECT_NE(text.find("selftest_empty"), std::string::npos);
  EXPECT_EQ(text.find("flash_forward"), std::string::npos);
}

TEST(Report, LeavesOutWhatTheOtherHandoutPoses) {
  FixtureStore fixture;
  ReportOptions options;
  options.handout = "2025";
  EXPECT_EQ(render(fixture_registry(), fixture.store(), options).find("`flash_forward`"), std::string::npos);
}

TEST(Report, AsJsonHoldsEveryTable) {
  FixtureStore fixture;
  fixture.add_smoke_run();
  ReportOptions options;
  options.format = Format::json;
  const Json json = Json::parse(render(fixture_registry(), fixture.store(), options));
  ASSERT_TRUE(json.is_array());
  std::string ids;
  for (const Json& table : json) ids += table.at("id").get<std::string>() + " ";
  EXPECT_EQ(ids, "causal flash_forward speedup laws ");
  EXPECT_EQ(json[1].at("rows").size(), 7U);
  EXPECT_DOUBLE_EQ(json[1].at("rows")[1].at("vs_naive"), 1.0);
}

TEST(Table, KeepsARowForEveryWayACaseEnded) {
  FixtureStore fixture;
  fixture.add_smoke_run();
  const std::string text =
      write(filled(fixture, "experiments/flash_forward/tables/flash_forward.sql"), Format::markdown);
  for (const char* words : {"OOM", "wrong", "skipped", "needs 137 GiB"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(text.find("| |"), std::string::npos) << "a blank cell:\n" << text;
}

TEST(Table, AFailureIsNotHiddenByAnOlderSuccess) {
  FixtureStore fixture;
  fixture.add_smoke_run();
  const std::string view = "SELECT status FROM v_newest WHERE implementation = 'mine' AND task = 'measure'";
  EXPECT_EQ(fixture.store().query(view).rows.at(0).at(0).text, "check_failed");
}

TEST(Table, NamesMachineProtocolRevisionRunAndCommand) {
  FixtureStore fixture;
  fixture.add_smoke_run();
  const Table table = filled(fixture, "experiments/flash_forward/tables/flash_forward.sql");
  for (const char* words : {"Example_CPU 9000 (2 threads), no GPU", "protocol quick (hot)", "revision 012345678",
                            "run 01900000-0001", "`syslab run 'flash_*' --preset smoke --db 'my file.db'`"}) {
    EXPECT_NE(table.footnote.find(words), std::string::npos) << words << " in " << table.footnote;
  }
}

TEST(Table, WarnsOfASmokeRunAndOnlyThen) {
  FixtureStore fixture;
  fixture.add_kernel_run();
  EXPECT_EQ(filled(fixture, "experiments/flash_forward/tables/flash_forward.sql").warning, "");
  fixture.add_smoke_run();
  EXPECT_EQ(
      filled(fixture, "experiments/flash_forward/tables/flash_forward.sql").warning.find("Partly from a smoke run"),
      0U);
  FixtureStore smoke_alone;
  smoke_alone.add_smoke_run();
  EXPECT_EQ(filled(smoke_alone, "experiments/flash_forward/tables/flash_forward.sql").warning.find("Smoke run on CPU"),
            0U);
}

TEST(Sentence, FromASmokeRunSaysSoItself) {
  FixtureStore fixture;
  fixture.add_kernel_run();
  const std::string path = "experiments/flash_forward/tables/speedup.sql";
  EXPECT_EQ(write_sentences(filled(fixture, path)).find("Smoke"), std::string::npos);
  fixture.add_smoke_run();
  const std::string both = write_sentences(filled(fixture, path));
  EXPECT_EQ(both.find("- Forward"), 0U);
  EXPECT_NE(both.find("\n- *Smoke run:* Forward"), std::string::npos) << both;
}

TEST(Table, NeverMixesProtocolsWithoutAColumn) {
  FixtureStore fixture;
  fixture.add_smoke_run();
  const std::string path = "experiments/flash_forward/tables/flash_forward.sql";
  EXPECT_EQ(write(filled(fixture, path), Format::markdown).find("| protocol |"), std::string::npos);
  fixture.add_kernel_run();
  EXPECT_NE(write(filled(fixture, path), Format::markdown).find("| protocol |"), std::string::npos);
}

TEST(Laws, ThatWereNotReachedDoNotLookPassed) {
  FixtureStore fixture;
  fixture.add_law_run();
  const Table table = filled(fixture, "reports/tables/laws.sql", "flash_forward");
  ASSERT_EQ(table.result.rows.size(), 3U);
  const std::string text = write(table, Format::markdown);
  EXPECT_NE(text.find("**not run**"), std::string::npos) << text;
  EXPECT_NE(text.find("**falsified**"), std::string::npos) << text;
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

// Every table that the binary carries parses, runs on an empty store and gives the columns it declares.
TEST(Fill, EveryEmbeddedTableIsWhole) {
  FixtureStore fixture;
  int tables = 0;
  for (const char* prefix : {"experiments/", "reports/tables/"}) {
    for (const Resource& file : resources(prefix)) {
      if (!file.path.ends_with(".sql") || file.path.find("/figures/") != std::string_view::npos) continue;
      const Table table = filled(fixture, std::string(file.path), "flash_forward");
      if (!table.source.sentence.empty()) {
        EXPECT_NE(write_sentences(table).find("Not measured"), std::string::npos) << file.path;
      }
      ++tables;
    }
  }
  EXPECT_GE(tables, 9);
}

TEST(CommandLine, CanBePastedIntoAShell) {
  EXPECT_EQ(command_line(R"(["/opt/bin/syslab", "run", "a b", "it's", "x=1,2"])"),
            R"(syslab run 'a b' 'it'\''s' x=1,2)");
  EXPECT_EQ(command_line(R"(["run", "all"])"), "syslab run all");
  EXPECT_EQ(command_line("[]"), "");
  EXPECT_EQ(command_line("not json"), "");
}

}  // namespace
}  // namespace syslab::report
