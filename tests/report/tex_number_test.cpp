#include "report/writers/tex_number.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace syslab::report {
namespace {

std::string text_of(const char* text) {
  const auto number = tex_number(text);
  return number ? number->text : "none";
}

TEST(TexNumber, ReadsWhatCellsOfNumbersSay) {
  EXPECT_EQ(text_of("0"), "0");
  EXPECT_EQ(text_of("-12"), "-12");
  EXPECT_EQ(text_of("1.250"), "1.250");
  EXPECT_EQ(text_of("1.0e-05"), "1.0e-05");
  EXPECT_EQ(text_of("-2e+3"), "-2e+3");
  EXPECT_EQ(text_of("2e30"), "2e30");
}

TEST(TexNumber, PutsTheUncertaintyInParenthesesWithoutItsZeros) {
  EXPECT_EQ(text_of("1.234 ± 0.005"), "1.234(5)");
  EXPECT_EQ(text_of("1.2 ± 10.5"), "1.2(105)");
  EXPECT_EQ(text_of("1230 ± 230"), "1230(230)");
  EXPECT_EQ(text_of("2.50 ± 0.00"), "2.50(0)");
}

TEST(TexNumber, TakesNothingElse) {
  for (const char* text : {"",
                           "-",
                           ".5",
                           "1.",
                           "+1",
                           " 1",
                           "1 ",
                           "1.2.3",
                           "--1",
                           "1e",
                           "1e-",
                           "e5",
                           "1 ± ",
                           "1.5 ± .5",
                           "1.5 ± 0.",
                           "2.500 ± 0",
                           "1 ± 0.5",
                           "1e5 ± 1",
                           "1.0 ± 1.0e5",
                           "1 (0 … 2)",
                           "12 MiB",
                           "OOM",
                           "1,5",
                           "½",
                           "nan",
                           "inf",
                           "5.000e-13 ± 1.0e-14"}) {
    EXPECT_EQ(text_of(text), "none") << text;
  }
}

TEST(TexNumber, AColumnHasRoomForTheWidestOfEachPart) {
  std::vector<TexNumber> numbers;
  for (const char* text : {"1000", "-1.25", "3.4 ± 1.2", "1e-12"}) numbers.push_back(tex_number(text).value());
  EXPECT_EQ(number_column(numbers), "S[table-format=-4.2(2)e-2]");
  EXPECT_EQ(number_column(std::vector{tex_number("1e5").value()}), "S[table-format=1.0e1]");
}

}  // namespace
}  // namespace syslab::report
