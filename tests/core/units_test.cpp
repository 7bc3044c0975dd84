#include "core/text/units.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "core/text/format_seconds.hpp"
#include "core/text/utc_time.hpp"

namespace syslab {
namespace {

using namespace std::chrono_literals;

TEST(FormatDuration, KeepsThreeDigitsAndAUnit) {
  EXPECT_EQ(format_duration(0ns), "0 ns");
  EXPECT_EQ(format_duration(999ns), "999 ns");
  EXPECT_EQ(format_duration(1500ns), "1.50 us");
  EXPECT_EQ(format_duration(1234567ns), "1.23 ms");
  EXPECT_EQ(format_duration(12345678ns), "12.3 ms");
  EXPECT_EQ(format_duration(999'600'000ns), "1.00 s");  // not "1000 ms"
  EXPECT_EQ(format_duration(190s), "3 m 10 s");
  EXPECT_EQ(format_duration(59'990ms), "1 m 0 s");
  EXPECT_EQ(format_duration(2h + 5min), "2 h 5 m");
  EXPECT_EQ(format_duration(-5ms), "-5.00 ms");
}

TEST(FormatDuration, HasAnAnswerForEveryNumber) {
  EXPECT_EQ(format_duration(Nanoseconds::min()), "-2562047 h 47 m");
  EXPECT_EQ(format_duration(Nanoseconds::max()), "2562047 h 47 m");
  EXPECT_EQ(format_seconds(0.0015), "1.50 ms");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::quiet_NaN()), "nan s");
  EXPECT_EQ(format_seconds(-std::numeric_limits<double>::infinity()), "-inf s");
  EXPECT_EQ(format_seconds(1e300), "1e+300 s");
}

TEST(FormatBytes, AlwaysPrintsBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(8388608), "8.00 MiB (8388608 B)");
  EXPECT_EQ(format_bytes(std::uint64_t{3} << 30), "3.00 GiB (3221225472 B)");
}

TEST(ParseBytes, TellsDecimalFromBinarySuffixes) {
  EXPECT_EQ(parse_bytes("1024"), 1024U);
  EXPECT_EQ(parse_bytes("25M"), 25'000'000U);
  EXPECT_EQ(parse_bytes("8Mi"), 8U << 20);
  EXPECT_EQ(parse_bytes("8MiB"), 8U << 20);
  EXPECT_EQ(parse_bytes("2 kB"), 2000U);
  EXPECT_EQ(parse_bytes("1.5Gi"), 1610612736U);
  EXPECT_EQ(parse_bytes("18446744073709551615"), UINT64_MAX);
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", "M", "-1", "1.5", "12x", "1 Mi B", "nan", "inf", "99999999999999999999", "20000000000Gi"}) {
    EXPECT_FALSE(parse_bytes(text).has_value()) << text;
  }
}

TEST(ParseDuration, ReadsUnitsAndSumsOfThem) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("2m"), 2min);
  EXPECT_EQ(parse_duration("1.5"), 1500ms);
  EXPECT_EQ(parse_duration("1 h 30 min"), 90min);
  EXPECT_EQ(parse_duration("250us"), 250us);
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "ms", "10 parsecs", "-3s", "1..2s", "1e99s", "inf", "5 m x"}) {
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
  }
}

TEST(ParseDuration, ReadsBackWhatFormatDurationWrote) {
  for (double ns = 1; ns < 5e13; ns *= 1.37) {
    const Nanoseconds duration(std::llround(ns));
    const auto again = parse_duration(format_duration(duration));
    ASSERT_TRUE(again.has_value()) << format_duration(duration);
    // Three digits; above a minute the last unit printed.
    const double tolerance = ns < 60e9 ? 0.00501 * ns : ns < 3600e9 ? 0.51e9 : 30.1e9;
    EXPECT_NEAR(static_cast<double>(again->count()), static_cast<double>(duration.count()), tolerance)
        << format_duration(duration);
  }
}

TEST(UtcFrom, ReadsWhatIsWrittenAndNoOtherText) {
  EXPECT_TRUE(utc_from(utc_now()));
  EXPECT_EQ(utc_from("1970-01-02T00:00:01Z"), std::chrono::sys_seconds(std::chrono::seconds(86401)));
  EXPECT_EQ(utc_from("1970-01-02T00:00:01.999Z"), std::chrono::sys_seconds(std::chrono::seconds(86401)));
  for (const char* wrong : {"", "2026", "2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
                            "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00+01:00Z",
                            "2026-01-01T00:00:00,000Z", "2026-01-01T00:00:00.00xZ", "2026-01-01T00:00:00Z\n"}) {
    EXPECT_FALSE(utc_from(wrong)) << wrong;
  }
}

TEST(UtcNow, IsAnIsoTimestampWithMilliseconds) {
  EXPECT_TRUE(std::regex_match(utc_now(), std::regex("20\\d\\d-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z")));
}

}  // namespace
}  // namespace syslab
