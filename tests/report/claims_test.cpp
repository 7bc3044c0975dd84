// A report states results from rows only: no header, sentence or text of its SQL claims one whatever the rows are.
#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "core/resources.hpp"

namespace syslab::report {
namespace {

struct Rule {
  const char* claim;  // of what
  const char* pattern;
  bool of_headers_only = false;  // a query may choose such words by its rows
};

constexpr std::array kRules{
    Rule{"the result of an official test", R"(\btest_[a-z_]+|\btests/[a-z_]+)"},
    Rule{"that something passes", R"((`|\b(tests?|checks?|laws?|cases?|suites?|kernels?|gradients?|it|they|all|which)))"
                                  R"( (passe[sd]|pass)\b(?! through))"},
    Rule{"a comparison of speed", R"(\b(is|are|was|were) (always |never |no |much )?(faster|slower)\b)", true},
    Rule{"that results are right",
         R"(\b(is|are|was|were|stays?) (always )?(checked|correct|right|exact|bit-identical|identical)\b)", true},
    Rule{"equal bits", R"(\bbit for bit\b)"},
    Rule{"that every row is good",
         R"(\b([Ee]very|[Ee]ach|[Aa]ll) [A-Za-z ]*\b(within its bound|checked|was right|were right|agree|fits?)\b)"},
    Rule{"a measured number", R"((^|[ (=])[0-9]+(\.[0-9]+)? (KiB|MiB|GiB|µs|GB/s|tokens/s)\b)"},
    Rule{"what never happens", R"(\b(always|never) [a-z])", true},
};

// The header of a file as one text, and the texts in its query: literals of more than one word.
struct Texts {
  std::string header;
  std::vector<std::string> literals;
};

Texts texts_of(std::string_view sql) {
  Texts texts;
  std::string query;
  bool in_header = true;
  while (!sql.empty()) {
    const std::string line(sql.substr(0, sql.find('\n')));
    sql.remove_prefix(std::min(sql.size(), line.size() + 1));
    in_header = in_header && line.starts_with("--");
    if (in_header) {
      const std::size_t words = line.find_first_not_of("- ");
      if (words != std::string::npos) texts.header += " " + line.substr(words);
    } else {
      query += line.substr(0, line.find("-- ")) + "\n";
    }
  }
  static const std::regex kLiteral("'(?:[^']|'')*'");
  for (std::sregex_iterator it(query.begin(), query.end(), kLiteral), end; it != end; ++it) {
    std::string literal = it->str().substr(1, it->str().size() - 2);
    if (literal.find(' ') != std::string::npos) texts.literals.push_back(std::move(literal));
  }
  return texts;
}

// "a measured number: '90 GiB'" for each claim that no row proves.
std::vector<std::string> claims_in(std::string_view sql) {
  const Texts texts = texts_of(sql);
  std::vector<std::string> found;
  for (const Rule& rule : kRules) {
    const std::regex pattern(rule.pattern);
    const auto look = [&](const std::string& text) {
      std::smatch match;
      if (std::regex_search(text, match, pattern)) found.push_back(std::string(rule.claim) + ": '" + match.str() + "'");
    };
    look(texts.header);
    if (rule.of_headers_only) continue;
    for (const std::string& literal : texts.literals) look(literal);
  }
  return found;
}

TEST(Claims, OfResultsComeFromRows) {
  std::size_t files = 0;
  for (const std::string_view folder : {"experiments/", "reports/"}) {
    for (const Resource& one : resources(std::string(folder))) {
      if (!std::string_view(one.path).ends_with(".sql")) continue;
      ++files;
      for (const std::string& claim : claims_in(one.text)) ADD_FAILURE() << one.file << " claims " << claim;
    }
  }
  EXPECT_GT(files, 100U);
}

TEST(Claims, AreFoundWherePlanted) {
  // As they once were in answers.
  for (const char* planted : {
           "-- sentence: It saves L. The hand-out's `test_flash_forward_pass_pytorch` passes.\n-- experiment: "
           "a\nSELECT 1",
           "-- sentence: {x}\nSELECT 'The hand-out''s `tests/test_ddp.py` passes: both toy models.' AS x",
           "-- sentence: {x}\nSELECT printf(' `syslab check` passes, on %d random models each.', 3) AS x",
           "-- note: All cases were checked bit for bit against single-process training.\nSELECT 1",
           "-- caption: unfused: c = 80 MiB a checkpoint, R = 6503 MiB a block.\nSELECT 1",
           "-- sentence: {x}\nSELECT printf('The step needs 90 GiB a GPU, and %s has less.', gpu) AS x FROM t",
           "-- sentence: {x}\nSELECT coalesce(e, 'Every error of O and L is within its bound, as it should.') AS x "
           "FROM t",
           "-- caption: Times. The fused kernel is faster\n--   than the other.\nSELECT 1",
           "-- caption: Segments of k blocks. Gradients are\n--   bit-identical to no checkpointing.\nSELECT 1",
           "-- note: `left_deep` never holds more than one stream and one block.\nSELECT 1",
       }) {
    EXPECT_FALSE(claims_in(planted).empty()) << planted;
  }
}

TEST(Claims, AreNotWhatRowsSayOrWordsOfTheSubject) {
  for (const char* honest : {
           "-- caption: Mean of ten passes; forward passes of blocks, both passes.\nSELECT 1",
           "-- sentence: A step takes {time} ms, {verdict}.\nSELECT iif(a < b, 'overlap is slower than naive DDP', 'it "
           "is not') AS verdict",
           "-- sentence: {x}\n-- columns: x|ms|.3g|right\nSELECT 1 AS x WHERE outcome = 'passed' AND law = 'ours.pass'",
           "-- note: MiB are 2^20 bytes; sizes from 1 MB on.\nSELECT 1",
       }) {
    const std::vector<std::string> claims = claims_in(honest);
    EXPECT_TRUE(claims.empty()) << honest << "\n" << (claims.empty() ? "" : claims.front());
  }
}

}  // namespace
}  // namespace syslab::report
