// A command line that a report prints is copied, and a shell reads the very arguments again.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "core/text/printable.hpp"
#include "core/text/shell_word.hpp"
#include "core/text/text.hpp"
#include "report/document.hpp"
#include "report/table.hpp"
#include "report/writers/writers.hpp"
#include "store/cells.hpp"

namespace syslab::report {
namespace {

using Words = std::vector<std::string>;

// As a POSIX shell reads it (2.2, Quoting): '…', $'…' with the escapes that are used here, and words apart at spaces.
// Nothing where it would do more than read words: expand, start, redirect.
std::optional<Words> words_of(const std::string& line) {
  Words words;
  std::string word;
  bool open = false;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ') {
      if (open) words.push_back(std::exchange(word, {}));
      open = false;
      ++i;
    } else if (line[i] == '\'') {
      const std::size_t end = line.find('\'', i + 1);
      if (end == std::string::npos) return std::nullopt;
      word += line.substr(i + 1, end - i - 1);
      open = true;
      i = end + 1;
    } else if (line.compare(i, 2, "$'") == 0) {
      for (i += 2; i < line.size() && line[i] != '\''; ++i) {
        if (line[i] != '\\') {
          word += line[i];
        } else if (line[++i] == '\\' || line[i] == '\'') {
          word += line[i];
        } else {
          word += static_cast<char>(std::stoi(line.substr(i, 3), nullptr, 8));
          i += 2;
        }
      }
      open = true;
      ++i;
    } else if (line[i] == '\\' && i + 1 < line.size()) {
      word += line[i + 1];
      open = true;
      i += 2;
    } else if (std::strchr("|&;<>()$`\"*?[]#~!{}\n\t", line[i]) != nullptr) {
      return std::nullopt;
    } else {
      word += line[i++];
      open = true;
    }
  }
  if (open) words.push_back(word);
  return words;
}

std::string line_of(const Words& words, const ShellSigns signs = ShellSigns::printable) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word, signs);
  return line;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  const std::size_t to = from == std::string::npos ? from : text.find(end, from + begin.size());
  return to == std::string::npos ? "(not there)" : text.substr(from + begin.size(), to - from - begin.size());
}

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    bool known = false;
    for (const auto& [from, to] : pairs) {
      if (text.compare(at, from.size(), from) != 0) continue;
      out += to;
      at += from.size();
      known = true;
      break;
    }
    if (!known) out += text[at++];
  }
  return out;
}

// CommonMark 4.5: a fenced block ends at a line of as many backticks.
std::string of_markdown(const std::string& page) {
  std::string fence = "```";
  const std::size_t at = page.find("\n```");
  if (at == std::string::npos) return "(not there)";
  while (page[at + 1 + fence.size()] == '`') fence += '`';
  return between(page.substr(at), "\n" + fence + "sh\n", "\n" + fence + "\n");
}

// CommonMark 6.1: a code span ends at as many backticks as it began with, and loses a space at both ends.
std::string of_span(const std::string& markdown) {
  const std::size_t at = markdown.find('`');
  if (at == std::string::npos) return "(not there)";
  const std::size_t begin = markdown.find_first_not_of('`', at), run = begin - at;
  for (std::size_t end = markdown.find('`', begin); end != std::string::npos;) {
    const std::size_t after = std::min(markdown.find_first_not_of('`', end), markdown.size());
    if (after - end == run) {
      std::string text = markdown.substr(begin, end - begin);
      const bool padded = text.size() > 1 && text.front() == ' ' && text.back() == ' ' &&
                          text.find_first_not_of(' ') != std::string::npos;
      return padded ? text.substr(1, text.size() - 2) : text;
    }
    end = markdown.find('`', after);
  }
  return "(no end)";
}

std::string of_html(const std::string& page) {
  return replaced(between(page, "<pre><code>", "</code></pre>"),
                  {{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&#13;", "\r"}, {"&amp;", "&"}});
}

std::string of_tex(const std::string& page) {
  const std::string text = between(page, "\\begin{flushleft}\n", "\n\\end{flushleft}");
  return replaced(text, {{"\\allowbreak{}", ""},
                         {"\\texttt{", ""},
                         {"\\textquotedbl{}", "\""},
                         {"\\textquotesingle{}", "'"},
                         {"\\textless{}", "<"},
                         {"\\textgreater{}", ">"},
                         {"\\textbackslash{}", "\\"},
                         {"\\textasciicircum{}", "^"},
                         {"\\textasciigrave{}", "`"},
                         {"\\textbar{}", "|"},
                         {"\\textasciitilde{}", "~"},
                         {"\\#", "#"},
                         {"\\$", "$"},
                         {"\\%", "%"},
                         {"\\&", "&"},
                         {"\\_", "_"},
                         {"\\{", "{"},
                         {"\\}", "}"},
                         {"\\ ", " "},
                         {"{*}", "*"},
                         {"{,}", ","},
                         {"{-}", "-"},
                         {"{[}", "["},
                         {"{]}", "]"},
                         {"}", ""}});
}

// What shells, pages and terminals care about comes up often.
rc::Gen<std::string> any_word() {
  const auto sign = rc::gen::elementOf(std::vector<std::string>{
      "`", "``", "\\", "'", "\"",     "$",      "$(",     "|",      "<",    ">",    "&",       "&amp;", "*",
      "_", "#",  "!",  " ", "  ",     "\n",     "\r",     "\t",     "{",    "}",    "[",       "]",     "~",
      "%", "-",  ",",  "µ", "\u4e2d", "\u2028", "\u202e", "\u200b", "\x1b", "\xff", "\xe2\x80"});
  const auto letter = rc::gen::map(rc::gen::inRange('a', 'z'), [](char c) { return std::string(1, c); });
  return rc::gen::map(rc::gen::container<Words>(rc::gen::oneOf(sign, letter)), [](const Words& parts) {
    std::string word;
    for (const std::string& part : parts) word += part;
    return word;
  });
}

Words any_words() { return *rc::gen::nonEmpty(rc::gen::container<Words>(any_word())); }

RC_GTEST_PROP(CodeProperty, AShellReadsTheArgumentsThatWerePrinted, ()) {
  const Words words = any_words();
  const std::string line = line_of(words);
  RC_ASSERT(is_printable(line));
  RC_ASSERT(words_of(line) == words);
  const Document document{"A", {Code{line}}};
  RC_ASSERT(words_of(of_markdown(write_markdown(document))) == words);
  RC_ASSERT(words_of(of_html(write_html(document))) == words);
}

RC_GTEST_PROP(CodeProperty, AShellReadsTheArgumentsThatLatexSet, ()) {
  const Words words = any_words();
  const std::string line = line_of(words, ShellSigns::ascii);
  RC_ASSERT(words_of(line) == words);
  RC_ASSERT(words_of(of_tex(write_tex(Document{"A", {Code{line}}}))) == words);
}

RC_GTEST_PROP(CodeProperty, ASpanOfAParagraphIsTheTextToo, ()) {
  const Words words = any_words();
  const std::string line = line_of(words);
  const Document document{"A", {Paragraph{Text{{Style::code, line}}}}};
  const std::string page = write_markdown(document);
  RC_ASSERT(of_span(page.substr(page.find('\n'))) == line);
}

// A cell has room for a pipe in an element alone, where every sign that means something is an entity.
RC_GTEST_PROP(CodeProperty, ACodeInACellIsTheTextToo, ()) {
  const std::string line = line_of(any_words());
  Table table;
  table.source.columns = {{"command", "1", "code", "left"}};
  table.result.columns = {"command"};
  table.result.rows = {{store::text_cell(line)}};
  const std::string page = write_markdown(table);
  const std::size_t row = page.rfind("\n| ", page.find_last_not_of('\n'));
  const std::string cell = page.substr(row + 3, page.find('\n', row + 1) - row - 5);
  if (line.find('|') == std::string::npos) {
    RC_ASSERT(of_span(cell) == line);
    return;
  }
  RC_ASSERT(cell.find_first_of("|`\\*_[]~$") == std::string::npos);
  std::string text = between(cell, "<code>", "</code>"), read;
  static const std::regex kEntity("&#([0-9]+);");
  for (std::smatch match; std::regex_search(text, match, kEntity); text = match.suffix()) {
    read += match.prefix().str() + static_cast<char>(std::stoi(match[1]));
  }
  RC_ASSERT(read + text == line);
}

// The reader above is ours: a real shell agrees. Those that have no $'…' yet read what needs none.
std::optional<std::string> printed_by(const std::string& shell, const std::string& line) {
  const std::string command =
      "command -v " + shell + " >/dev/null && " + shell + " -c " + shell_word("printf '%s\\n.' " + line) + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  return ::pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
}

TEST(Code, IsReadByShells) {
  const Words plain{"`touch a`", "$(touch b)", "a\\b", "it's", "\"", "  ", "", "µ|&;<>*?[]#~!{}"};
  Words all = plain;
  for (const char* more : {"two\nlines", "\x1b[2J", "\u2028'\\!`", "\xff"}) all.emplace_back(more);
  const auto expected = [](const Words& words) {
    std::string text;
    for (const std::string& word : words) text += word + "\n.";
    return text;
  };
  EXPECT_EQ(printed_by("sh", line_of(plain)), expected(plain));
  if (!printed_by("bash", "x")) GTEST_SKIP() << "no bash";
  EXPECT_EQ(printed_by("bash", line_of(all)), expected(all));
  EXPECT_EQ(printed_by("bash", line_of(all, ShellSigns::ascii)), expected(all));
}

}  // namespace
}  // namespace syslab::report
