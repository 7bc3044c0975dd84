#include "cli/command_line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/error.hpp"

namespace syslab::cli {
namespace {

using Words = std::vector<std::string>;

template <typename Options>
Options parsed(const Words& words, GlobalOptions* global = nullptr) {
  const auto result = parse_command_line(words);
  const CommandLine& line = std::get<CommandLine>(result);
  if (global != nullptr) *global = line.global;
  return std::get<Options>(line.verb);
}

std::string fault(const Words& words) {
  try {
    parse_command_line(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

std::string information(const Words& words) { return std::get<Information>(parse_command_line(words)).text; }

TEST(CommandLine, ReadsARun) {
  const auto run =
      parsed<RunOptions>({"run",      "flash_forward", "-a",     "seq=128,1024", "weighted_sum", "-a",      "dim=64",
                          "--preset", "smoke",         "--impl", "na*",          "--mine",       "me=k.so", "--seed",
                          "7",        "--laws",        "none",   "--timeout",    "5s",           "--label", "try"});
  EXPECT_EQ(run.selection.names, (Words{"flash_forward", "weighted_sum"}));
  EXPECT_EQ(run.selection.assignments, (Words{"seq=128,1024", "dim=64"}));
  EXPECT_EQ(run.selection.preset, "smoke");
  EXPECT_EQ(run.selection.implementations, Words{"na*"});
  EXPECT_EQ(run.selection.mine, Words{"me=k.so"});
  EXPECT_EQ(run.selection.seed, 7U);
  EXPECT_EQ(run.laws, Laws::none);
  EXPECT_EQ(run.timeout, "5s");
  EXPECT_EQ(run.label, "try");
  EXPECT_FALSE(run.measuring.protocol.has_value());
  EXPECT_FALSE(run.measuring.launches.has_value());
}

TEST(CommandLine, ReadsHowFarACheckGoes) {
  const auto usual = parsed<CheckOptions>({"check", "flash_forward"});
  EXPECT_FALSE(usual.exit_first);
  EXPECT_FALSE(usual.last_failed);
  EXPECT_TRUE(usual.until.empty());
  const auto check =
      parsed<CheckOptions>({"check", "flash_forward", "-x", "--last-failed", "--until", "1h", "-k", "x"});
  EXPECT_TRUE(check.exit_first);
  EXPECT_TRUE(check.last_failed);
  EXPECT_EQ(check.until, "1h");
  EXPECT_TRUE(parsed<CheckOptions>({"check", "flash_forward", "--exitfirst"}).exit_first);
  EXPECT_NE(fault({"check", "x", "--until", "1h", "--deep"}).find("--deep"), std::string::npos);
  EXPECT_NE(fault({"check", "x", "--until", "1h", "--cases", "5"}).find("--cases"), std::string::npos);
  fault({"check", "x", "--until"});
}

TEST(CommandLine, TakesGlobalOptionsBeforeAndAfterTheVerb) {
  for (const Words& words : {Words{"--db", "x.db", "--json", "--color", "never", "list"},
                             Words{"list", "--db", "x.db", "--json", "--color", "never"}}) {
    GlobalOptions global;
    parsed<ListOptions>(words, &global);
    EXPECT_EQ(global.database, "x.db");
    EXPECT_TRUE(global.json);
    EXPECT_EQ(global.color, Color::never);
  }
}

TEST(CommandLine, ReadsTheDatabaseFromTheEnvironmentUnlessItIsGiven) {
  ::setenv("SYSLAB_DB", "from_environment.db", 1);
  GlobalOptions global;
  parsed<ListOptions>({"list"}, &global);
  EXPECT_EQ(global.database, "from_environment.db");
  parsed<ListOptions>({"list", "--db", "given.db"}, &global);
  EXPECT_EQ(global.database, "given.db");
  ::unsetenv("SYSLAB_DB");
  parsed<ListOptions>({"list"}, &global);
  EXPECT_EQ(global.database, "syslab.db");
}

TEST(CommandLine, NamesTheNearestVerbAndOption) {
  EXPECT_NE(fault({"rnu", "flash_forward"}).find("'run'"), std::string::npos);
  EXPECT_NE(fault({"--db", "list", "lits"}).find("'list'"), std::string::npos);
  EXPECT_NE(fault({"run", "x", "--presett", "smoke"}).find("'--preset'"), std::string::npos);
  EXPECT_NE(fault({"--jsno", "list"}).find("'--json'"), std::string::npos);
}

TEST(CommandLine, RefusesValuesThatAnOptionDoesNotTake) {
  EXPECT_NE(fault({"run", "x", "--laws", "some"}).find("some"), std::string::npos);
  EXPECT_NE(fault({"check", "x", "--contract", "weak"}).find("weak"), std::string::npos);
  EXPECT_NE(fault({"query", "SELECT 1", "--to", "pdf"}).find("pdf"), std::string::npos);
  fault({"run", "x", "--seed", "minus"});
  EXPECT_EQ(fault({"run", "x", "--seed", "-1"}), "--seed: '-1' is no whole number from 0 on; see `syslab run --help`");
  fault({"run", "x", "--seed"});
  EXPECT_EQ(fault({"run", "x", "--seed", "18446744073709551616"}),
            "--seed: '18446744073709551616' is more than 18446744073709551615; see `syslab run --help`");
  fault({"prune", "--keep", "18446744073709551616"});
  fault({"check", "x", "--cases", "0"});
  fault({"query", "SELECT 1", "SELECT 2"});
}

TEST(CommandLine, ShowsHelpWithTheHeadlineVerbsFirstAndTheWorkerNotAtAll) {
  const std::string help = information({});
  EXPECT_EQ(help, information({"--help"}));
  EXPECT_EQ(help, information({"help"}));
  EXPECT_EQ(information({"help", "run"}), information({"run", "--help"}));
  EXPECT_NE(information({"run", "--help"}).find("--db FILE"), std::string::npos);
  EXPECT_LT(help.find("check"), help.find("More"));
  EXPECT_LT(help.find("\n  run "), help.find("More"));
  EXPECT_GT(help.find("\n  resume "), help.find("More"));
  EXPECT_EQ(help.find("worker"), std::string::npos);
  EXPECT_NE(information({"run", "--help"}).find("--preset"), std::string::npos);
  EXPECT_EQ(information({"--version"}).rfind("syslab 0.1.0 (", 0), 0U);
}

// A line of a shell, as the examples of --help are: words, and words in double quotes.
Words shell_words(const std::string& line) {
  Words words(1);
  bool quoted = false, any = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any) words.emplace_back();
      any = false;
    } else {
      words.back() += c;
      any = true;
    }
  }
  if (!any) words.pop_back();
  return words;
}

TEST(CommandLine, GivesExamplesOfEveryVerbThatItAcceptsTwoAtLeast) {
  for (const VerbWords& verb : words_of_command_line()) {
    const std::string help = information({verb.verb, "--help"});
    const std::string start = "\n  syslab " + verb.verb;
    int examples = 0;
    for (std::size_t at = help.find(start); at != std::string::npos; at = help.find(start, at + 1), ++examples) {
      const std::size_t end = std::min(help.find('\n', at + 1), help.find(" > ", at));  // a shell's redirection
      const std::string line = help.substr(at + 3, end - at - 3);
      Words words = shell_words(line);
      words.erase(words.begin());
      EXPECT_NO_THROW(parse_command_line(words)) << line;
    }
    EXPECT_GE(examples, 2) << verb.verb;
  }
}

TEST(CommandLine, TellsAShellWhatMayFollow) {
  const std::vector<VerbWords> verbs = words_of_command_line();
  const auto check = std::ranges::find(verbs, "check", &VerbWords::verb);
  ASSERT_NE(check, verbs.end());
  EXPECT_EQ(std::ranges::find(verbs, "worker", &VerbWords::verb), verbs.end());
  const auto option = [&check](const std::string& name) {
    for (const OptionWords& one : check->options) {
      if (std::ranges::find(one.names, name) != one.names.end()) return one;
    }
    return OptionWords{};
  };
  EXPECT_EQ(option("--contract").values, (Words{"handout", "full"}));
  EXPECT_EQ(option("--color").values, (Words{"auto", "always", "never"}));
  EXPECT_EQ(option("-x").type, "");
  EXPECT_EQ(option("--map").type, "FILE");
  EXPECT_TRUE(option("NAME").positional);
  EXPECT_FALSE(option("--impl").positional);
}

TEST(CommandLine, TakesWhatFollowsTwoDashesForOptionsOfBisectAlone) {
  EXPECT_EQ(
      parsed<BisectOptions>({"--db", "run", "bisect", "a", "b", "--", "x", "--impl", "y"}).selection.implementations,
      (Words{"y"}));
  EXPECT_EQ(parsed<RunOptions>({"run", "--label", "bisect", "--", "--impl"}).selection.names, (Words{"--impl"}));
}

// What is said to be an example is taken: each stands on its line as it would be typed.
TEST(CommandLine, PercentagesOfExamplesHaveTheirSign) {
  int seen = 0;
  for (const VerbWords& verb : words_of_command_line()) {
    std::istringstream text(information({verb.verb, "--help"}));
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with("  syslab ")) continue;
      for (const std::string option : {"--delta ", "--detect ", "--tolerance "}) {
        const std::size_t at = line.find(option);
        if (at == std::string::npos) continue;
        EXPECT_EQ(line.substr(line.find_first_not_of("0123456789.", at + option.size()), 1), "%") << line;
        ++seen;
      }
    }
  }
  EXPECT_GE(seen, 3);
}

TEST(CommandLine, KeepsTheHiddenWorkerVerb) { parsed<WorkerOptions>({"worker"}); }

}  // namespace
}  // namespace syslab::cli
