#include "core/command_text.hpp"

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

TEST(NumberPattern, OfARateTheTimeIsItsReciprocal) {
  for (const char* unit : {"GB/s", "tokens/s", "GFLOPS", "it/sec"}) {
    const NumberPattern rate(std::string("{} ") + unit);
    EXPECT_TRUE(rate.is_rate());
    EXPECT_EQ(rate.unit(), unit);
    EXPECT_DOUBLE_EQ(rate.find(std::string("250 ") + unit)->seconds, 0.004);
  }
}

TEST(NumberPattern, WithoutAPlaceOrAUnitItIsRefused) {
  for (const char* wrong : {"", "ms", "{}", "{} {} ms", "{} apples", "{} GB"}) {
    EXPECT_THROW((void)NumberPattern(wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace syslab
