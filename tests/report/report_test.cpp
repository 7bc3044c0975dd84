#include "report/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "core/error.hpp"
#include "core/resources.hpp"
#include "core/text/text.hpp"
#include "report/cells.hpp"
#include "report/deliverables.hpp"
#include "report/provenance.hpp"
#include "report/section.hpp"
#include "tests/golden/golden.hpp"
#include "tests/report/fixture.hpp"
#include "tests/report/tables.hpp"

namespace syslab::report {
namespace {

// What differs from one run of the test to the next: identities of checks, and when a run began.
std::string steady(std::string text) {
  text = std::regex_replace(text, std::regex(R"(\b(?!a000[123]000)[0-9a-f]{8}\b)"), "CHECK");
  text = std::regex_replace(text, std::regex(R"(\d{4}(?:-|\{-\})\d\d(?:-|\{-\})\d\d \d\d:\d\d)"), "DATE TIME");
  return std::regex_replace(text, std::regex(R"((Measured on [^\n]*), \d{4}-\d\d-\d\d\.)"), "$1, DATE.");
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
  ReportOptions options = everything();
  options.figures = false;  // those depend on the gnuplot of the machine
  for (const auto& [format, name] : {std::pair{Format::markdown, "report/report.md"},
                                     {Format::latex, "report/report.tex"},
                                     {Format::html, "report/report.html"}}) {
    options.format = format;
    golden::expect(name, steady(render(fixture_registry(), fixture.store(), options).text));
  }
}

TEST(Report, OfAnEmptyStoreSaysHowToMeasureEverything) {
  FixtureStore fixture;
  const std::string text = render(fixture_registry(), fixture.store(), everything()).text;
  golden::expect("report/empty.md", text);
  EXPECT_NE(text.find("Not measured: `syslab run flash_forward`."), std::string::npos);
  EXPECT_NE(text.find("Not measured: `syslab check flash_forward`."), std::string::npos);
}

TEST(Report, HasAPlaceForEveryProblemOfBothHandouts) {
  FixtureStore fixture;
  ReportOptions options = everything();
  options.handout.clear();
  const std::string text = render(fixture_registry(), fixture.store(), options).text;
  EXPECT_EQ(handout_problems().size(), 31U);
  std::size_t place = 0;
  std::map<std::string, int> points;
  for (const Problem& problem : handout_problems()) {
    const std::size_t found = text.find("\n`" + problem.id + "` · hand-out 202");
    ASSERT_NE(found, std::string::npos) << problem.id;
    EXPECT_GT(found, place) << problem.id << " out of order";
    place = found;
    EXPECT_FALSE(problem.deliverables.empty()) << problem.id;
    for (const auto& [handout, worth] : problem.points) points[handout] += worth;
  }
  EXPECT_EQ(points, (std::map<std::string, int>{{"2025", 107}, {"2026", 137}}))
      << "what the hand-outs' points add up to";
  EXPECT_NE(text.find("**(b) Table**: Peak memory by context length, forward only and training step.\n"),
            std::string::npos);
  EXPECT_NE(text.find("*Not measured: there is no experiment yet.*"), std::string::npos);
  EXPECT_NE(text.find("*A derivation; no experiment yet.*"), std::string::npos);
}

// What a deliverable names as its evidence is carried by this binary, or belongs to an experiment that is not there
// yet.
TEST(Deliverables, NameTablesThatAreThere) {
  for (const Problem& problem : handout_problems()) {
    for (const Deliverable& wanted : problem.deliverables) {
      for (const std::string& by : wanted.by) {
        const std::string experiment = by.substr(0, by.find('/')), what = by.substr(by.find('/') + 1);
        EXPECT_FALSE(resources("experiments/" + experiment + "/").empty()) << problem.id << ": " << by;
        if (what == "*" || what == "sentences" || what == "figures" || what == "laws") continue;
        EXPECT_TRUE(find_resource("experiments/" + experiment + "/tables/" + what + ".sql"))
            << problem.id << ": " << by;
      }
    }
  }
}

TEST(Deliverables, OfAnotherShapeAreRefused) {
  EXPECT_THROW(parse_problems("{}["), Error);
  EXPECT_THROW(parse_problems(R"([{"id": "x"}])"), Error);
  const auto with = [](const std::string& kind, const std::string& by) {
    return R"([{"id": "x", "title": "T", "section": "S", "question": "Q", "points": {"2026": 1}, "deliverables": [{"part": "a", "kind": ")" +
           kind + R"(", "what": "w", "by": [")" + by + R"("]}]}])";
  };
  EXPECT_EQ(parse_problems(with("table", "x/y")).at(0).deliverables.at(0).by.at(0), "x/y");
  EXPECT_THROW(parse_problems(with("poem", "x/y")), Error);
  EXPECT_THROW(parse_problems(with("table", "y")), Error);
}

TEST(Report, WithoutAnswersLeavesMarkedPlaces) {
  FixtureStore fixture;
  fixture.add_kernel_run();
  ReportOptions options = everything();
  options.answers = false;
  const std::string text = render(fixture_registry(), fixture.store(), options).text;
  EXPECT_EQ(text.find("times as fast as `naive`"), std::string::npos) << "a sentence made from the store";
  EXPECT_NE(text.find("| 128 | 64 | fp32 |"), std::string::npos) << "tables stay";
  EXPECT_NE(text.find("> *(b) In words: your answer goes here.*"), std::string::npos);
  options.answers = true;
  const std::string whole = render(fixture_registry(), fixture.store(), options).text;
  EXPECT_NE(whole.find("times as fast as `naive`"), std::string::npos);
  EXPECT_EQ(whole.find("your answer goes here"), std::string::npos);
}

TEST(Report, TellsWhichTableFillsAPart) {
  FixtureStore fixture;
  const std::string wanted = "one loop over key tiles, fp32 accumulators. → ";
  const std::string before = render(fixture_registry(), fixture.store(), everything()).text;
  EXPECT_NE(before.find(wanted + "not measured: `syslab check flash_forward`"), std::string::npos);
  fixture.add_kernel_run();
  const std::string after = render(fixture_registry(), fixture.store(), everything()).text;
  EXPECT_NE(after.find(wanted + "below: FlashAttention-2 forward pass\n"), std::string::npos)
      << "the table says `fills: b`";
}

TEST(HandIn, OfAFullStoreIsWhatItWas) {
  FixtureStore fixture;
  fixture.add_smoke_run();
  fixture.add_kernel_run();
  fixture.add_law_run();
  ReportOptions options;
  options.figures = false;
  options.files = true;
  options.standing = "130 of 137 points";
  options.own_words["leaderboard"] = "We tried `split_k`.\n\nIt was slower.\n";
  golden::expect("report/handin.md", steady(render(fixture_registry(), fixture.store(), options).text));
}

TEST(HandIn, IsMuchShorterThanItsAppendixAndLinksIt) {
  FixtureStore fixture;
  fixture.add_kernel_run();
  ReportOptions options;
  options.figures = false;
  options.files = true;
  options.appendix = "handin-appendix.md";
  const Report report = render(fixture_registry(), fixture.store(), options);
  ASSERT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].path, options.appendix);
  EXPECT_EQ(report.files[0].bytes, render(fixture_registry(), fixture.store(),
                                          [] {
                                            ReportOptions all = everything();
                                            all.figures = false;
                                            all.files = true;
                                            return all;
                                          }())
                                       .text);
  EXPECT_LT(std::ranges::count(report.text, '\n') * 3, std::ranges::count(report.files[0].bytes, '\n') * 2);
  EXPECT_NE(report.text.find("[All measurements](handin-appendix.md#flash_forward)"), std::string::npos);
}

TEST(Report, ToStandardOutputSaysWhereItsFiguresAre) {
  FixtureStore fixture;
  const Report report = render(fixture_registry(), fixture.store(), everything());
  EXPECT_TRUE(report.files.empty());
  EXPECT_NE(report.text.find("they are files beside the report, which `--output FILE` writes"), std::string::npos);
}

// One whose hand-out asks for figures, by name.
registry::Registry with_figures() {
  registry::Registry registry;
  registry.add(registry::experiment("flash_benchmarking")
                   .title("FlashAttention-2 against the plain form")
                   .problem("2026", "flash_benchmarking", 5)
                   .axis("seq", {std::int64_t{128}}, "queries and keys")
                   .runs([](worker::CaseContext&) {}));
  registry.seal();
  return registry;
}

TEST(HandIn, HasAtMostTwelveRowsOfATable) {
  FixtureStore fixture;
  constexpr std::int64_t kSizes = 30;
  for (std::int64_t i = 1; i <= kSizes; ++i) {
    fixture.add_benchmark_run("", "flash_tiled", {{"seq", 16 * i}, {"head_dim", std::int64_t{64}}});
  }
  ReportOptions options;
  options.figures = false;
  options.files = true;
  const std::string text = render(with_figures(), fixture.store(), options).text;
  EXPECT_NE(text.find("12 of 30 rows.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n| 16 |"), std::string::npos) << "the first";
  EXPECT_NE(text.find("\n| 480 |"), std::string::npos) << "and the last";
}

TEST(Report, WithoutFiguresSaysOfThoseThatAreAskedForThatTheyWereLeftOut) {
  FixtureStore fixture;
  ReportOptions options = everything();
  options.experiments = {"flash_benchmarking"};
  const std::string wanted = "**Figure**: Time and rate over sequence length. → *left out, as all figures of this";
  const std::string nowhere = render(with_figures(), fixture.store(), options).text;  // standard output has no files
  EXPECT_NE(nowhere.find(wanted), std::string::npos) << nowhere;
  options.figures = false;
  const std::string unwanted = render(with_figures(), fixture.store(), options).text;
  EXPECT_NE(unwanted.find(wanted), std::string::npos) << unwanted;
  EXPECT_NE(unwanted.find("*No figures here: `--no-figures` left them out.*"), std::string::npos) << unwanted;
  EXPECT_EQ(unwanted.find("not shown by this report yet"), std::string::npos);
}

TEST(Section, WarnsOnceOfASmokeRunUnlessSomeOfItIsNone) {
  const auto section = [](std::vector<std::string> warnings) {
    std::vector<Block> blocks{Heading{2, plain_text("One"), "one"}};
    for (const std::string& warning : warnings) {
      Table table = speeds();
      table.warning = warning;
      blocks.emplace_back(table);
    }
    Table nothing = speeds();  // of no times, it has nothing to be warned of
    nothing.result.rows.clear();
    blocks.emplace_back(nothing);
    warn_once(blocks, 1);
    std::string shown;
    for (const Block& block : blocks) {
      if (const auto* paragraph = std::get_if<Paragraph>(&block)) shown += "paragraph " + bare(paragraph->text) + "; ";
      if (const auto* table = std::get_if<Table>(&block)) shown += "table " + table->warning + "; ";
    }
    return shown;
  };
  EXPECT_EQ(section({"smoke", "smoke"}), "paragraph smoke; table ; table ; table ; ");
  EXPECT_EQ(section({"smoke", "partly", "smoke"}),
            "paragraph smoke; paragraph partly; table ; table ; table ; table ; ");
  EXPECT_EQ(section({"smoke", ""}), "table smoke; table ; table ; ") << "the second is good";
  EXPECT_EQ(section({""}), "table ; table ; ");
}

TEST(Report, LeavesOutSelftestsUnlessTheyAreNamed) {
  FixtureStore fixture;
  EXPECT_EQ(render(fixture_registry(), fixture.store(), everything()).text.find("selftest_empty"), std::string::npos);
  ReportOptions options = everything();
  options.experiments = {"selftest_empty"};
  const std::string text = render(fixture_registry(), fixture.store(), options).text;
  EXPECT_NE(text.find("selftest_empty"), std::string::npos);
  EXPECT_EQ(text.find("flash_forward"), std::string::npos);
}

TEST(Report, LeavesOutWhatTheOtherHandoutPoses) {
  FixtureStore fixture;
  ReportOptions options = everything();
  options.handout = "2025";
  const std::string text = render(fixture_registry(), fixture.store(), options).text;
  EXPECT_EQ(text.find("How much faster than unfused attention?"), std::string::npos);
  EXPECT_NE(text.find("`ddp_overlap_bucketed` · hand-out 2025: 8 points"), std::string::npos);
  EXPECT_EQ(text.find("`fsdp`"), std::string::npos);
}

// One problem of each hand-out alone, and one of both.
registry::Registry of_two_handouts() {
  registry::Registry registry;
  const auto add = [&](const std::string& id, const std::vector<std::string>& handouts) {
    auto builder = registry::experiment(id).title(id).axis("seq", {std::int64_t{128}}, "queries and keys");
    for (const std::string& handout : handouts) builder.problem(handout, id, 5);
    registry.add(builder.runs([](worker::CaseContext&) {}));
  };
  add("communication_accounting", {"2025"});
  add("ddp_overlap_bucketed", {"2025"});
  add("flash_forward", {"2025", "2026"});
  add("fsdp", {"2026"});
  registry.seal();
  return registry;
}

TEST(Report, NamesWhatTheStoreHasOfTheOtherHandoutAlone) {
  FixtureStore fixture;
  const auto text = [&](const ReportOptions& options) {
    return render(of_two_handouts(), fixture.store(), options).text;
  };
  const auto add = [&](const std::string& experiment, Status status) {
    fixture.add({.experiment = experiment,
                 .params = {{"seq", std::int64_t{128}}},
                 .implementation = "naive",
                 .status = status});
  };
  const std::string said = "Also in this store";
  add("flash_forward", Status::ok);
  add("fsdp", Status::ok);
  add("ddp_overlap_bucketed", Status::unsupported);
  EXPECT_EQ(text({}).find(said), std::string::npos) << "nothing was measured of the other hand-out alone";
  add("communication_accounting", Status::ok);
  EXPECT_NE(text({}).find("*Also in this store, posed by the hand-out of 2025 alone: `communication_accounting`; "
                          "`syslab report --handout 2025` shows them. No figures here: "),
            std::string::npos)
      << "one note, not two: " << text({}).substr(0, 1000);
  add("ddp_overlap_bucketed", Status::oom);
  EXPECT_NE(text({}).find("alone: `communication_accounting`, `ddp_overlap_bucketed`;"), std::string::npos);
  EXPECT_NE(text({.handout = "2025"}).find("of 2026 alone: `fsdp`;"), std::string::npos);
  EXPECT_EQ(text({.handout = "2025", .names_others = false}).find(said), std::string::npos);
  EXPECT_EQ(text({.handout = ""}).find(said), std::string::npos) << "both are shown";
  EXPECT_EQ(text({.experiments = {"fsdp"}}).find(said), std::string::npos) << "no more was asked for";
}

TEST(Report, AsJsonHoldsEveryTable) {
  FixtureStore fixture;
  fixture.add_smoke_run();
  ReportOptions options = everything();
  options.format = Format::json;
  const Json json = Json::parse(render(fixture_registry(), fixture.store(), options).text);
  ASSERT_TRUE(json.is_array());
  std::string ids;
  for (const Json& table : json) ids += table.at("id").get<std::string>() + " ";
  EXPECT_EQ(ids, "a_tiled b_kernels c_causal causal flash_forward shapes speedup not_passed laws ");
  EXPECT_EQ(json[4].at("rows").size(), 7U);
  EXPECT_DOUBLE_EQ(json[4].at("rows")[1].at("vs_naive"), 1.0);
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

bool is_of_times(const Column& column) {
  constexpr std::array<std::string_view, 6> kUnits{"s", "ms", "us", "GB/s", "TFLOP/s", "×"};
  return std::find(kUnits.begin(), kUnits.end(), column.unit) != kUnits.end();
}

// Whatever was measured before its outputs turned out to be wrong, in whichever experiment.
TEST(Table, AWrongResultHasNoTime) {
  FixtureStore fixture;
  std::set<std::string> experiments;
  for (const Resource& file : resources("experiments/")) experiments.insert(split(std::string(file.path), '/').at(1));
  for (const std::string& experiment : experiments) {
    std::vector<worker::Record> records{
        worker::CheckRecord{.name = "reference:y", .outcome = Outcome::falsified, .seed = "7"}};
    for (const char* name : {"time", "time_mean", "time_stddev", "forward", "forward_mean", "backward", "backward_mean",
                             "update", "exposed", "exposed_forward", "communicating", "pipelined", "step_plain"}) {
      records.emplace_back(
          worker::MetricRecord{.name = name, .unit = "s", .value = 1, .low = 0.9, .high = 1.1, .n = 9});
    }
    records.emplace_back(worker::MetricRecord{.name = "tflops", .unit = "TFLOP/s", .value = 1});
    records.emplace_back(worker::MetricRecord{.name = "gbps", .unit = "GB/s", .value = 1});
    records.emplace_back(worker::MetricRecord{.name = "profiled_steps", .unit = "1", .value = 1});
    fixture.add({.experiment = experiment,
                 .params = {{"warmup", std::int64_t{5}}, {"strategy", std::string("each")}},
                 .implementation = "mine",
                 .records = records,
                 .ranks = 2,
                 .status = Status::check_failed});
  }
  std::size_t seen = 0;
  for (const Resource& file : resources("experiments/")) {
    const std::string path(file.path);
    if (path.find("/tables/") == std::string::npos) continue;
    const Table table = filled(fixture, path);
    for (std::size_t row = 0; row < table.result.rows.size(); ++row) {
      if (plain(cell_of(table.result, row, "status")) != "check_failed") continue;
      ++seen;
      for (const Column& column : table.source.columns) {
        if (!is_of_times(column)) continue;
        const store::Cell& cell = cell_of(table.result, row, column.name);
        EXPECT_TRUE(cell.type == store::Cell::Type::null || cell.text == "–") << path << " " << column.name;
      }
    }
  }
  EXPECT_GE(seen, 15U) << "tables keep a row of it";
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
                            "run a0001000", "`syslab run 'flash_*' --preset smoke --db 'my file.db'`"}) {
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
