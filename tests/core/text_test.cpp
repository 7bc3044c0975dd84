#include "core/text/text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/shell_word.hpp"
#include "core/text/utf8.hpp"
#include "core/text/workflow_commands.hpp"

namespace syslab {
namespace {

TEST(GlobMatch, StarTakesAnyTextAndQuestionMarkOneLetter) {
  EXPECT_TRUE(glob_match("flash_*", "flash_forward"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("*ward", "flash_backward"));
  EXPECT_TRUE(glob_match("f*_b*d", "flash_backward"));
  EXPECT_TRUE(glob_match("a?c", "abc"));
  EXPECT_FALSE(glob_match("flash_*", "flas_forward"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("*ab", "abc"));
}

TEST(GlobMatch, TakesTimeLinearInTheStarsNotExponential) {
  const std::string text(5000, 'a');
  EXPECT_FALSE(glob_match("a*a*a*a*a*a*a*a*a*a*b", text));
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(split("a,", ','), (std::vector<std::string>{"a", ""}));
}

TEST(Trim, RemovesSpaceAtBothEndsOnly) {
  EXPECT_EQ(trim("  a b\t\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

const std::vector<std::string> kExperiments{"flash_backward", "flash_forward", "weighted_sum",
                                            "mixed_precision_accumulation"};

TEST(FirstLine, IsAllWhereThereIsNoSecond) {
  EXPECT_EQ(first_line("a b\nc\n"), "a b");
  EXPECT_EQ(first_line("\nc"), "");
  EXPECT_EQ(first_line("a b"), "a b");
}

TEST(Counted, FormsThePluralAsEnglishDoes) {
  EXPECT_EQ(counted(1, "search"), "1 search");
  EXPECT_EQ(counted(0, "case"), "0 cases");
  EXPECT_EQ(counted(2, "search"), "2 searches");
  EXPECT_EQ(counted(2, "process"), "2 processes");
  EXPECT_EQ(counted(15, "property"), "15 properties");
  EXPECT_EQ(counted(3, "day"), "3 days");
}

TEST(Nearest, FindsTyposSwapsAndOtherCase) {
  EXPECT_EQ(nearest("flash_foward", kExperiments).front(), "flash_forward");
  EXPECT_EQ(nearest("falsh_forward", kExperiments).front(), "flash_forward");
  EXPECT_EQ(nearest("Weighted_Sum", kExperiments).front(), "weighted_sum");
}

TEST(Nearest, OffersNamesThatContainTheWord) {
  EXPECT_EQ(nearest("backward", kExperiments), (std::vector<std::string>{"flash_backward"}));
  EXPECT_EQ(nearest("flash", kExperiments, 2).size(), 2U);
}

TEST(Nearest, IsEmptyWhenNothingIsPlausible) { EXPECT_TRUE(nearest("quantum", kExperiments).empty()); }

TEST(ShellWord, IsQuotedWhereAShellWouldReadMore) {
  EXPECT_EQ(shell_word("me=/home/me/flash.py:Flash"), "me=/home/me/flash.py:Flash");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("flash_*"), "'flash_*'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("größe µs"), "'größe µs'");
}

TEST(ShellWord, HasNothingThatCannotBeShown) {
  EXPECT_EQ(shell_word("a\nb"), "$'a\\012b'");
  EXPECT_EQ(shell_word("it's \\ \x1b!"), "$'it\\'s \\\\ \\033\\041'");
  EXPECT_EQ(shell_word("\u2028\u202e1"), "$'\\342\\200\\250\\342\\200\\2561'");
  EXPECT_EQ(shell_word("no \xff UTF-8"), "$'no \\377 UTF-8'");
  EXPECT_EQ(shell_word("µs", ShellSigns::ascii), "$'\\302\\265s'");
  EXPECT_EQ(shell_word("a b", ShellSigns::ascii), "'a b'");
}

TEST(UnknownName, SaysWhatWasAskedAndWhatThereIs) {
  const std::vector<std::string> axes{"dtype", "seq"};
  EXPECT_EQ(unknown_name("axis", "sek", axes), "unknown axis 'sek'; did you mean 'seq'? (known: dtype, seq)");
  EXPECT_EQ(unknown_name("axis of gemm", "x", {}), "unknown axis 'x' of gemm (there are none)");
  EXPECT_EQ(unknown_name("axis", "x", {}), "unknown axis 'x' (there are none)");
  EXPECT_EQ(unknown_name("key", "x\nPASS\u2028", {}), "unknown key 'x\\x0aPASS\\xe2\\x80\\xa8' (there are none)");
}

TEST(Printable, LeavesNothingThatSteersATerminal) {
  EXPECT_EQ(printable("plain µs\tand\nlines"), "plain µs\tand\nlines");
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("10 %\r20 %\r\ndone\r"), "10 %\n20 %\ndone\n");
  EXPECT_EQ(printable("a\x7f\xc2\x9b"
                      "31mb"),
            "a\\x7f\\xc2\\x9b31mb");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "drow\xe2\x81\xa9"),
            "\\xe2\\x80\\xaedrow\\xe2\\x81\\xa9");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("a\u2028b\u200bc\ufeffd\u00ade"), "a\\xe2\\x80\\xa8b\\xe2\\x80\\x8bc\\xef\\xbb\\xbfd\\xc2\\xade");
  EXPECT_EQ(one_line("2026\nconfirmed\t\x1b\r\n"), "2026\\x0aconfirmed\\x09\\x1b\\x0d\\x0a");
  EXPECT_EQ(one_line("10 %\r20 %"), "10 %\\x0d20 %");
  EXPECT_EQ(one_line("plain µs"), "plain µs");
  EXPECT_EQ(printable("\xe2\x80"), "\ufffd\ufffd");  // cut short: nothing behind its end is read
}

TEST(Printable, IsUtf8WhateverTheBytesAre) {
  EXPECT_EQ(printable("a\xff"
                      "b µ\n"),
            "a\ufffdb µ\n");
  EXPECT_EQ(one_line("\xc0\xaf\xed\xa0\x80 \xe4\xb8\xad"), "\ufffd\ufffd\ufffd\ufffd\ufffd \u4e2d")
      << "overlong; half a pair";
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_TRUE(is_utf8(printable(all)) && is_utf8(one_line(all)) && is_utf8(with_margin(all, "| ")));
}

TEST(Printable, IsTextThatIsShownAsItIs) {
  for (const char* text : {"", "plain µs …", "größe", "\u4e2d", "\U0001F600", "\\x0a"})
    EXPECT_TRUE(is_printable(text)) << text;
  for (const char* text : {"\n",     "\t",     "\r",     "\x7f",   "\xff",   "\xe2\x80",  "\u0085", "\u00ad",
                           "\u061c", "\u180e", "\u200b", "\u200f", "\u2028", "\u2029",    "\u202a", "\u202e",
                           "\u2060", "\u2066", "\u2069", "\ufeff", "\ufff9", "\U000E0041"}) {
    EXPECT_FALSE(is_printable(text)) << one_line(text);
    EXPECT_TRUE(is_printable(one_line(text))) << one_line(text);
  }
}

TEST(Printable, HasNoSignWithoutWidth) {
  for (const char* text :
       {"\u034f",     "\u115f",     "\u1160",     "\u17b4",     "\u17b5",     "\u180b",     "\u180f",
        "\u2065",     "\u3164",     "\ufe00",     "\ufe0f",     "\uffa0",     "\ufff0",     "\ufff8",
        "\U0001BCA0", "\U0001D173", "\U0001D17A", "\U000E0000", "\U000E0100", "\U000E01EF", "\U000E0FFF"}) {
    EXPECT_FALSE(is_printable(text)) << one_line(text);
    EXPECT_TRUE(is_printable(one_line(text))) << one_line(text);
  }
  for (const char* text : {"\u034e",     "\u0350",     "\u115e",     "\u1161", "\u17b3", "\u17b6", "\u1810",
                           "\u3163",     "\u3165",     "\ufdff",     "\ufe10", "\uff9f", "\uffa1", "\U0001BC9F",
                           "\U0001D172", "\U000DFFFF", "\U000E1000", "\u2027", "\u2070", "\u00a0"}) {
    EXPECT_TRUE(is_printable(text)) << text;
  }
}

TEST(Printable, HasAtMostEightMarksOnACharacter) {
  for (const std::string mark :
       {"\u0300", "\u036f", "\u0489", "\u05bd", "\u0610", "\u065f", "\u1ab0", "\u1dff", "\u20d0", "\ufe2f"}) {
    std::string text = "µ";
    for (int i = 0; i < 8; ++i) text += mark;
    EXPECT_TRUE(is_printable(text)) << text;
    EXPECT_TRUE(is_printable(text + text)) << text;
    EXPECT_FALSE(is_printable(text + mark)) << mark;
    EXPECT_FALSE(is_printable(text + "\u0301")) << mark;
    std::string all = "a";
    for (int i = 0; i < 3000; ++i) all += mark;
    EXPECT_FALSE(is_printable(all));
    EXPECT_TRUE(is_printable(one_line(all)) && is_printable(printable(all)));
  }
  EXPECT_EQ(one_line("e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301"),
            "e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\\xcc\\x81");
}

TEST(WorkflowCommands, AreFoundWhereGitHubsRunnerFindsThem) {
  EXPECT_EQ(without_workflow_commands("::error::x\n \t::stop-commands::y\n"),
            "\\x3a:error::x\n \t\\x3a:stop-commands::y\n");
  for (const char* space : {"\u00a0", "\u3000", " \u2028\t", "\r", "\v"}) {
    EXPECT_EQ(without_workflow_commands(std::string("x\n") + space + "::y"), std::string("x\n") + space + "\\x3a:y");
  }
  EXPECT_EQ(without_workflow_commands("said ##[add-mask]wrong"), "said \\x23#[add-mask]wrong");
  EXPECT_EQ(without_workflow_commands("std::vector: a ## heading"), "std::vector: a ## heading");
}

TEST(WithLinesBelow, LetsNoQuotedLinePassForOurs) {
  EXPECT_EQ(with_lines_below("one"), "one");
  EXPECT_EQ(with_lines_below("bad 'x\nhand-out 2026: PASS\n'"), "bad 'x\n  hand-out 2026: PASS\n  '");
  EXPECT_EQ(with_lines_below("no name\ntry: --mine me=F"), "no name\ntry: --mine me=F");
  EXPECT_EQ(with_lines_below("no 'x\ntry: rm'; expected y\ntry: y"), "no 'x\n  try: rm'; expected y\ntry: y");
  EXPECT_EQ(with_lines_below("several:\n  a\n  b\n"), "several:\n  a\n  b\n");
}

TEST(PrintableJson, EscapesAsJsonDoes) {
  EXPECT_EQ(printable_json("{\n  \"a\": \"µs\u202e\u007f\u0085\U000E0041\"\n}"),
            "{\n  \"a\": \"µs\\u202e\\u007f\\u0085\\udb40\\udc41\"\n}");
  EXPECT_EQ(parse_json(printable_json("\"\U000E0041\u2028\"")), "\U000E0041\u2028");
}

TEST(CutTo, SaysWhatWasCutAndCutsBetweenCharacters) {
  EXPECT_EQ(cut_to("short", 5), "short");
  const std::string cut = cut_to(std::string(100, 'a') + std::string(100, 'b'), 60);
  EXPECT_LE(cut.size(), 60U);
  EXPECT_NE(cut.find("aaa… (cut: 200 bytes in all)"), std::string::npos) << cut;
  std::string sharp;
  for (int i = 0; i < 100; ++i) sharp += "é";
  const std::string between = cut_to(sharp, 61);
  EXPECT_EQ((between.find("…") % 2), 0U) << between;
}

}  // namespace
}  // namespace syslab
