#include "core/text/command_text.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace syslab {
namespace {

using CommandWords = std::vector<std::string>;

TEST(CommandText, WordsArePartedAtBlanksAndKeptTogetherByQuotes) {
  EXPECT_EQ(command_words("./bench  {n} --name='a b' \"c d\"e f\\ g ''"),
            (CommandWords{"./bench", "{n}", "--name=a b", "c de", "f g", ""}));
  for (const char* wrong : {"", "  ", "a 'b", "a | b", "a > b", "a $HOME", "a; b"}) {
    EXPECT_THROW((void)command_words(wrong), Error) << wrong;
  }
  EXPECT_EQ(command_words("sh -c 'a | b $c'"), (CommandWords{"sh", "-c", "a | b $c"}));
}

TEST(CommandText, APlaceIsANameInBracesAndAValueIsNeverReadAgain) {
  EXPECT_EQ(places_in("x{n} {n} {m_2} {} {3} {a b} {"), (CommandWords{"n", "m_2"}));
  const Params values{{"n", std::int64_t{4}}, {"text", std::string("{n} 'x")}};
  EXPECT_EQ(filled("a{n}b{text}{m}{}{{n}}", values), "a4b{n} 'x{m}{}{4}");
}

TEST(CommandText, WhatARunStoresIsReadBack) {
  const CommandPlace place{"/home/me and you", "./bench {n}: x", "in /home: ./slow {n}"};
  const auto read = parse_command_place(to_string(place));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->folder, place.folder);
  EXPECT_EQ(read->command, place.command);
  EXPECT_EQ(read->reference, place.reference);
  EXPECT_FALSE(parse_command_place("/home/me/kernel.so"));
  EXPECT_FALSE(parse_command_place("in /home"));
}

TEST(NumberPattern, TheLastNumberWithTheTextAroundItCounts) {
  const NumberPattern time("took: {} ms");
  EXPECT_FALSE(time.is_rate());
  const std::string text = "took: 7 ms\ntook:\t12.5ms, but took: 3 s";
  const auto found = time.find(text);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->seconds, 0.0125);
  EXPECT_EQ(text.substr(found->begin, found->end - found->begin), "12.5");
  for (const char* none : {"", "took: ms", "took: -1 ms", "took: 0 ms", "took: nan ms", "took: inf ms", "tok: 1 ms"}) {
    EXPECT_FALSE(time.find(none)) << none;
  }
}

TEST(NumberPattern, IfTheLastPlaceHasNoNumberAboveZeroNoneCounts) {
  struct Row {
    const char *pattern, *text;
    std::optional<double> milliseconds;
  };
  const Row rows[] = {{"took {} ms", "took 5 ms (warm-up)\ntook 0 ms", {}},
                      {"took {} ms", "took 5 ms\ntook -3 ms", {}},
                      {"took {} ms", "took 5 ms\ntook inf ms", {}},
                      {"took {} ms", "took 5 ms\ntook nan ms", {}},
                      {"took {} ms", "took 5 ms\ntook n/a ms", {}},
                      {"took {} ms", "took 5 ms\ntook 1,234 ms", {}},
                      {"took {} ms", "took 5 ms\ntook 1e-999 ms", {}},
                      {"took {} ms", "took 0 ms\ntook 5 ms", 5},
                      {"took {} ms", "took 5 ms\ntook 0 s, took 7", 5},
                      {"{} ms", "5 ms, then 0 ms", {}},
                      {"{} ms", "5 ms, then -3 ms", {}},
                      {"{} ms", "5 ms, then 1,234 ms", {}},
                      // A unit in other words is no place of a number.
                      {"{} ms", "5 ms (all times in ms, of 3-5 ms or so)", 5},
                      {"took {} s", "took 5 s. This took ages", 5000},
                      {"in {} s", "in 5 s, all in tests", 5000},
                      {"took {} s", "took 5 s\ntook 3 steps, took 3steps", 5000}};
  for (const Row& row : rows) {
    const auto found = NumberPattern(row.pattern).find(row.text);
    ASSERT_EQ(found.has_value(), row.milliseconds.has_value()) << row.pattern << ": " << row.text;
    if (found) {
      EXPECT_DOUBLE_EQ(1e3 * found->seconds, *row.milliseconds) << row.text;
    }
  }
  EXPECT_EQ(NumberPattern("took {} ms").find_other("took 5 ms\ntook 0 ms"), "took 0 ms");
  EXPECT_EQ(NumberPattern("{} ms").find_other("5 ms, 0 ms, all in ms"), "0 ms");
}

TEST(NumberPattern, NumberAndUnitAreWholeWords) {
  for (const auto& [pattern, text] : std::vector<std::pair<const char*, const char*>>{{": {} s", "total: 1:05 s"},
                                                                                      {", {} ms", "1,234 ms"},
                                                                                      {"{} ms", "10^5 ms"},
                                                                                      {"{} ms", "2*5 ms"},
                                                                                      {"{} ms", "1;234 ms"},
                                                                                      {"{} ms", "3~5 ms"},
                                                                                      {"{} ms", "a/5 ms"},
                                                                                      {"{} ms", "#5 ms"},
                                                                                      {"{} s", "5 s^2"},
                                                                                      {"{} s", "5 s-1"},
                                                                                      {"{} s", "5 s*m"},
                                                                                      {"{} s", "5 s+1"},
                                                                                      {"took - {} ms", "took -5 ms"},
                                                                                      {"t {} ms", "t5 ms"},
                                                                                      {"- {} ms", "3-5 ms"},
                                                                                      {"{} GB/s", "5 GB/s%"}}) {
    EXPECT_FALSE(NumberPattern(pattern).find(text)) << pattern << ": " << text;
  }
  for (const auto& [pattern, text] : std::vector<std::pair<const char*, const char*>>{
           {": {} ms", "total: 5 ms"},  {": {} ms", "total:5 ms"}, {", {} ms", "a, 5 ms"},
           {", {} ms", "a,5 ms"},       {"{} ms", "(5 ms)"},       {"{} ms", "[5 ms]"},
           {"{} ms", "t=5 ms"},         {"{} ms", "{\"t\":5 ms}"}, {"{} ms", "\"5 ms\""},
           {"{} ms", "~5 ms"},          {"{} ms", "$5 ms"},        {"{} ms", "<5 ms>"},
           {"{} ms", "|a|5 ms|"},       {"{} ms", "a;5 ms;"},      {"{} ms", "5 ms."},
           {"{} ms", "5 ms: a"},        {"{} ms", "5 ms(best)"},   {"{} ms", "5 ms!"},
           {"{} ms", "5 ms\x1b[0m"},    {"{} ms", "`5 ms`"},       {"{} ms", "5 ms</td>"},
           {"│ {} ms", "│5 ms"},        {"x{} ms", "x5 ms"},       {"1:{} ms", "1:5 ms"},
           {"- {} ms", "naive - 5 ms"}, {"^{} ms", "10^5 ms"},     {"{} ms", "run 2: 5 ms"},
           {"{} ms", "\t5\tms\r\n"}}) {
    const auto found = NumberPattern(pattern).find(text);
    ASSERT_TRUE(found) << pattern << ": " << text;
    EXPECT_DOUBLE_EQ(found->seconds, 0.005) << pattern << ": " << text;
  }
}

TEST(NumberPattern, ANumberWithoutTextBeforeItIsMetWhole) {
  const auto found = NumberPattern("{} us").find("123.5e1 us");
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->seconds, 1235e-6);
}

TEST(NumberPattern, AUnitEndsWhereThePatternEnds) {
  EXPECT_DOUBLE_EQ(NumberPattern("{} s").find("0.5 s\n1000 samples")->seconds, 0.5);
  EXPECT_DOUBLE_EQ(NumberPattern("{} ms ").find("(5 ms), 7 msgs, 8 ms/step, 9 ms2, 9 ms_")->seconds, 0.005);
  EXPECT_FALSE(NumberPattern("{} GB/s").find("7 GB/second"));
  EXPECT_DOUBLE_EQ(NumberPattern("{} ms (").find("5 ms (best)")->seconds, 0.005);
}

TEST(NumberPattern, ANumberBeginsWhereItsTextBegins) {
  const NumberPattern time("{} ms");
  for (const char* none :
       {"1,234 ms", "1'234 ms", "-5 ms", "3-5 ms", "v2 ms", "x_2 ms", "1:05 ms", "1/5 ms", "1..5 ms", "0x5 ms"}) {
    EXPECT_FALSE(time.find(none)) << none;
  }
  for (const char* five : {"5 ms", "took:5 ms", "naive,5 ms", "(5 ms)", "='5 ms'", "1,234 ms 5 ms"}) {
    ASSERT_TRUE(time.find(five)) << five;
    EXPECT_DOUBLE_EQ(time.find(five)->seconds, 0.005) << five;
  }
  EXPECT_DOUBLE_EQ(NumberPattern("v{} ms").find("v5 ms")->seconds, 0.005);
  EXPECT_DOUBLE_EQ(NumberPattern(" {} ms").find("1,234 ms, 5 ms")->seconds, 0.005);
}

TEST(NumberPattern, ACharacterOutsideAsciiNextToNumberOrUnitIsAPartOfIt) {
  const NumberPattern time("{} ms");
  // No-break spaces, a minus, a letter and a digit of another script before the number; the same after the unit.
  for (const char* none : {"1\u00a0234 ms", "1\u202f234 ms", "\u221212 ms", "å5 ms", "\u06615 ms",
                           "\xff"
                           "5 ms",
                           "12 ms²", "12 ms\u207b\u00b9", "5 msé", "5 ms\u00a0s", "5 ms\xff", "5\u00a0ms"}) {
    EXPECT_FALSE(time.find(none)) << none;
    EXPECT_FALSE(time.find(std::string("took ") + none + "\n")) << none;
  }
  EXPECT_FALSE(NumberPattern("took {} ms").find("took 12 ms²"));
  EXPECT_FALSE(NumberPattern("{} GB/s").find("7 GB/s²"));
  EXPECT_EQ(time.find_other("took 1\u00a0234 ms"), "1\u00a0234 ms");
  EXPECT_EQ(time.find_other("took \u221212 ms"), "\u221212 ms");
}

TEST(NumberPattern, APatternMayHaveCharactersOutsideAscii) {
  for (const char* text : {"5 µs", "5µs", "took 5 µs per step", "→ 5 µs │", "é 5 µs"}) {
    ASSERT_TRUE(NumberPattern("{} µs").find(text)) << text;
    EXPECT_DOUBLE_EQ(NumberPattern("{} µs").find(text)->seconds, 5e-6) << text;
  }
  for (const char* pattern : {"≈{} ms", "é: {} ms", "│{} ms │"}) {
    const NumberPattern time(pattern);
    const std::string printed = std::string(pattern).replace(std::string_view(pattern).find("{}"), 2, "5");
    ASSERT_TRUE(time.find(printed + " │")) << pattern;
    EXPECT_DOUBLE_EQ(time.find("before " + printed + " │")->seconds, 0.005) << pattern;
  }
  EXPECT_TRUE(NumberPattern("│{} ms │").find("│5 ms ││"));
  EXPECT_FALSE(NumberPattern("{} µs").find("5 µs²"));
}

TEST(NumberPattern, OfARateTheTimeIsItsReciprocal) {
  for (const char* unit : {"GB/s", "tokens/s", "GFLOPS", "it/sec"}) {
    const NumberPattern rate(std::string("{} ") + unit);
    EXPECT_TRUE(rate.is_rate());
    EXPECT_EQ(rate.unit(), unit);
    EXPECT_EQ(rate.quantity().better, Better::larger);
    EXPECT_EQ(rate.quantity().unit, unit);
    EXPECT_DOUBLE_EQ(rate.find(std::string("250 ") + unit)->seconds, 0.004);
  }
}

TEST(NumberPattern, ATimeIsInSecondsAndLessOfItIsBetter) {
  for (const char* unit : {"ns", "us", "ms", "s", "min"}) {
    const Quantity quantity = NumberPattern(std::string("{} ") + unit).quantity();
    EXPECT_EQ(quantity.better, Better::smaller) << unit;
    EXPECT_EQ(quantity.unit, "s") << unit;
  }
}

TEST(NumberPattern, WhatStandsForTheNumberAndIsNoneIsFound) {
  const NumberPattern time("result {} ms"), bare("{} GB/s");
  for (const char* none : {"0", "-5", "+-5", "++5", "+0", "nan", "inf", "+inf", "1,234.5", "n/a"}) {
    const std::string printed = std::string("result ") + none + " ms";
    EXPECT_FALSE(time.find(printed) && none[0] != '1') << none;
    EXPECT_EQ(time.find_other("begin\n" + printed + "\nend\n"), printed);
    EXPECT_EQ(bare.find_other("read " + std::string(none) + " GB/s"), std::string(none) + " GB/s");
  }
  EXPECT_EQ(time.find_other("result 0 ms\nresult -1 ms"), "result -1 ms");
  for (const char* text : {"", "result ms", "result 0 s", "result 0 msgs", "result\n"}) {
    EXPECT_FALSE(time.find_other(text)) << text;
  }
}

TEST(NumberPattern, ANumberMayHaveAPlus) {
  for (const char* pattern : {"took {} ms", "{} ms"}) {
    const NumberPattern time(pattern);
    for (const char* number : {"+5", "5", "+5.0", "+5e0"}) {
      const std::string printed = "took " + std::string(number) + " ms";
      const auto found = time.find(printed);
      ASSERT_TRUE(found) << pattern << ": " << printed;
      EXPECT_DOUBLE_EQ(found->seconds, 5e-3) << printed;
      EXPECT_EQ(printed.substr(found->begin, found->end - found->begin), number) << "the plus is a part of it";
    }
  }
  EXPECT_DOUBLE_EQ(NumberPattern("{} ms").find("took +.5 ms")->seconds, 0.5e-3);
  for (const char* sum : {"1+5 ms", "1e+5x ms", "x+5 ms"}) EXPECT_FALSE(NumberPattern("{} ms").find(sum)) << sum;
}

TEST(NumberPattern, EverySpellingOfAMicrosecondAndNoCountOfOperations) {
  EXPECT_DOUBLE_EQ(NumberPattern("{} \u00b5s").find("5 \u00b5s")->seconds, 5e-6);
  EXPECT_DOUBLE_EQ(NumberPattern("{} \u03bcs").find("5 \u03bcs")->seconds, 5e-6);
  EXPECT_TRUE(NumberPattern("{} TFLOPS").is_rate());
  EXPECT_TRUE(NumberPattern("{} GFLOP/s").is_rate());
  for (const char* count : {"{} FLOPs", "{} GFLOPs", "{} Gflops", "{} flops"}) {
    EXPECT_THROW((void)NumberPattern(count), Error) << count;
  }
}

TEST(Quantity, IsShownAsPeopleReadIt) {
  EXPECT_EQ(text_of({}, 3.3e-3), "3.30 ms");
  EXPECT_EQ(text_of({"TFLOP/s", Better::larger}, 1 / 330.0), "330 TFLOP/s");
  EXPECT_EQ(text_of({"B/s", Better::larger}, 1 / 3.3e12), "3.3e+12 B/s");
}

TEST(NumberPattern, WithoutAPlaceOrAUnitItIsRefused) {
  for (const char* wrong : {"", "ms", "{}", "{} {} ms", "{} apples", "{} GB"}) {
    EXPECT_THROW((void)NumberPattern(wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace syslab
