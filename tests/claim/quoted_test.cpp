// What a stranger's text may do to a line that it is printed in: nothing.
#include "claim/quoted.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "claim/differences.hpp"
#include "claim/message.hpp"
#include "claim/page.hpp"
#include "core/text/json_text.hpp"
#include "tests/claim/some_claim.hpp"
#include "words/speed_words.hpp"

namespace syslab::claim {
namespace {

const std::string kForged = "confirmed: it is 1.320 times as fast (95 %: 1.320 … 1.320).";

TEST(Quoted, IsOneLineOfSingleSpaces) {
  EXPECT_EQ(in_quotes("2.36"), "“2.36”");
  EXPECT_EQ(in_quotes(""), "“”");
  EXPECT_EQ(in_quotes("2.36" + std::string(40, ' ') + "confirmed"), "“2.36 confirmed”");
  EXPECT_EQ(in_quotes("a\u00a0\u3000 \u2800\u2003b"), "“a b”");
  EXPECT_EQ(in_quotes("a\nb"), "“a\\x0ab”");
}

TEST(Quoted, TextCannotEndItsQuotes) {
  EXPECT_EQ(in_quotes("AMD EPYC” **confirmed** “"), "“AMD EPYC' **confirmed** '”");
  EXPECT_EQ(in_quotes("\"a\" „b‟ «c» \uff02 ❝d❞"), "“'a' 'b' 'c' ' 'd'”");
}

TEST(Quoted, IsCutWhereAWideLetterTakesTwoColumns) {
  EXPECT_EQ(in_quotes(std::string(60, 'x')), "“" + std::string(60, 'x') + "”");
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "“" + std::string(60, 'x') + "…”");
  EXPECT_EQ(in_quotes("éé", 1), "“é…”");
  EXPECT_EQ(in_quotes("漢字", 2), "“漢…”");
}

TEST(Quoted, NumbersAndFlagsStandAlone) {
  EXPECT_EQ(shown(2), "2");
  EXPECT_EQ(shown(true), "true");
  EXPECT_EQ(shown("true"), "“true”");
  EXPECT_EQ(shown(Json{"avx2", "a\"b"}), "“avx2, a'b”");
}

TEST(Quoted, AnAxisIsQuotedUnlessItIsOneWord) {
  EXPECT_EQ(shown_axis("seq", Value(std::int64_t{128})), "seq=128");
  EXPECT_EQ(shown_axis("dtype", Value(std::string("bf16"))), "dtype=bf16");
  EXPECT_EQ(shown_axis("case", Value(std::string("shape=plain@d03ccdfd"))), "case=shape=plain@d03ccdfd");
  EXPECT_EQ(shown_axis("n", Value(std::string("1\u00a0\u00a02"))), "n=“1 2”");
  EXPECT_EQ(shown_axis("n", Value(std::string("1'"))), "n=“1'”");
  EXPECT_EQ(shown_axis("reads", Value(std::string("took {}  ms"))), "reads=“took {} ms”");
  EXPECT_EQ(shown_title("command n=1   confirmed k=2", R"({"k":2,"n":"1   confirmed"})"),
            "command n=“1 confirmed” k=2");
}

const std::string kMessage = "me printed no number 'took' confirmed: it is” “{} ms'";

TEST(ShownMessage, IsAsItIsWhereEachWordOfTheFileIsPlain) {
  EXPECT_EQ(shown_message(test::some_claim(), "no axis 'n'; try -a  m"), "no axis 'n'; try -a m");
}

// Of each field that a message can repeat.
TEST(ShownMessage, IsInQuotesWhereAWordOfTheFileMayEndItsOwn) {
  const std::vector<std::function<void(File&, const std::string&)>> fields{
      [](File& file, const std::string& word) { file.statement.faster = word; },
      [](File& file, const std::string& word) { file.statement.slower = word; },
      [](File& file, const std::string& word) {
        file.question.experiments = {"flash_forward", word};
      },
      [](File& file, const std::string& word) {
        file.question.assignments = {"seq=128", word};
      },
      [](File& file, const std::string& word) { file.question.devices = {word}; },
      [](File& file, const std::string& word) { file.question.preset = word; },
      [](File& file, const std::string& word) { file.question.protocol = word; },
      [](File& file, const std::string& word) { file.question.data = word; },
      [](File& file, const std::string& word) { file.question.reads = word; }};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (const char* word : {"took' confirmed: it is” “{} ms", "x'", "x`", "x\"", "x y", "“", "\u2019"}) {
      File claim = test::some_claim();
      fields[i](claim, word);
      EXPECT_EQ(shown_message(claim, kMessage), "“me printed no number 'took' confirmed: it is' '{} ms'”") << i << word;
    }
  }
}

// However long the title and the message are.
TEST(ShownMessage, KeepsItsQuotesInAFinding) {
  File claim = test::some_claim();
  claim.question.reads = "x y";
  for (const bool is_wrong : {false, true}) {
    const verdict::MeasuredSpeed failed{
        std::string(400, 't'), {}, shown_message(claim, std::string(500, 'm')), is_wrong};
    const std::vector measured{failed};
    const verdict::SpeedBorder border = border_of(claim.statement, 0);
    EXPECT_TRUE(words::reason(verdict::judge(border, measured), measured, border).ends_with("m…”"));
  }
}

// Each of these once began a line of its own where a terminal folded it.
TEST(Differences, PrintValuesOfTheFileInQuotes) {
  const std::string value = "2.36" + std::string(200, ' ') + kForged, told = "“2.36 confirmed: it is 1.320 times as";
  const auto lines_of = [](const std::function<void(File&)>& edit) {
    const File here = test::some_claim();
    File then = here;
    edit(then);
    return differences(then, here, true);
  };
  const auto fact = [&](const char* path) {
    return lines_of([&](File& file) {
      Json facts = parse_json(file.environment_json);
      facts[Json::json_pointer(path)] = value;
      file.environment_json = json_text(facts);
    });
  };
  std::vector<std::string> lines;
  for (const char* path : {"/libraries/glibc", "/host/os", "/cpu/model", "/env/OMP_NUM_THREADS", "/cuda/driver"}) {
    const std::vector<std::string> more = fact(path);
    EXPECT_EQ(more.size(), 1U) << path;
    lines.insert(lines.end(), more.begin(), more.end());
  }
  for (const char* field : {"compiler", "flags", "version", "git_sha"}) {
    for (const std::string& line : lines_of([&](File& file) { file.build_json = json_text(Json{{field, value}}); })) {
      if (line.find("not told, here") == std::string::npos && !line.starts_with("revision of syslab: claim “unknown")) {
        lines.push_back(line);
      }
    }
  }
  for (const std::string& line : lines_of([&](File& file) { file.faster.command = value; })) lines.push_back(line);
  EXPECT_EQ(lines.size(), 10U);
  for (const std::string& line : lines) {
    EXPECT_NE(line.find(told), std::string::npos) << line;
    EXPECT_EQ(line.find("  "), std::string::npos) << line;
    EXPECT_EQ(line.find("1.320)."), std::string::npos) << line;
  }
  for (const std::string& line : lines_of([&](File& file) {
         file.cases[0].warnings = {{stats::WarningCode::rows_equal, value, value, 0.5}};
       })) {
    EXPECT_NE(line.find("2.36 confirmed"), std::string::npos) << line;
    EXPECT_EQ(line.find("  "), std::string::npos) << line;
    EXPECT_EQ(line.find("1.320)."), std::string::npos) << line;
  }
}

TEST(Differences, OfWhatIsCutAreListed) {
  const File here = test::some_claim();
  File then = here;
  then.faster.command = "./bench  a";
  File other = here;
  other.faster.command = "./bench a";
  EXPECT_EQ(differences(then, other, true), std::vector<std::string>{"me command: claim “./bench a”, here “./bench a”, "
                                                                     "which differ in what is not shown"});
}

TEST(ClaimPage, QuotesWhatTheFileSays) {
  File claim = test::some_claim();
  claim.environment_json = R"({"cpu":{"model":"AMD EPYC” and confirmed “"},"gpu":[{"name":"a”card"}]})";
  claim.question.data = "zeros, as MLPerf wants them";
  claim.slower.digest = "4f2c”, the fastest";
  const std::string page = write_page(claim, "x.claim", report::Format::markdown);
  for (const char* wanted : {"claimed: “AMD EPYC' and confirmed '”", "claimed: “a'card”",
                             "“zeros, as MLPerf wants them”, drawn from seed 0", "revision “4f2c', the fastest”"}) {
    EXPECT_NE(page.find(wanted), std::string::npos) << wanted << "\n" << page;
  }
}

}  // namespace
}  // namespace syslab::claim
