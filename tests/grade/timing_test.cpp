// What a comparison of a submission with a reference is worth, and what it says of the submission.
#include "grade/timing.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syslab::grade {
namespace {

Json comparison(const Json& fields) {
  Json line{
      {"type", "comparison"}, {"verdict", "incomparable"}, {"log_ratio", nullptr}, {"low", nullptr}, {"high", nullptr}};
  line.update(fields);
  return read_comparison(line.dump() + "\n");
}

TEST(Timing, AWrongSubmissionIsSettled) {
  const Json entry = comparison({{"failed_b", "check_failed"}, {"detail_b", "out[3] is 7\nmore"}});
  EXPECT_EQ(entry, (Json{{"wrong", true}, {"why", "it is wrong where it was to be timed"}, {"told", "out[3] is 7"}}));
  EXPECT_TRUE(is_settled(entry));
}

TEST(Timing, WhereTheReferenceFailsAsWellNothingIsSaidOfTheSubmission) {
  const Json entry = comparison({{"failed_a", "check_failed"},
                                 {"failed_b", "check_failed"},
                                 {"about_b", "is wrong: out[3] is 7"},
                                 {"reason", "side A is wrong; side B is wrong: out[3] is 7"}});
  EXPECT_EQ(entry.at("told"), "side A is wrong; side B is wrong: out[3] is 7");
  EXPECT_FALSE(is_settled(entry));
}

TEST(Timing, NoTextDecides) {
  EXPECT_FALSE(is_settled(comparison({{"failed_b", "oom"}, {"reason", "side B is wrong: no, it is out of memory"}})));
  EXPECT_FALSE(is_settled(comparison({{"reason", "side B is wrong"}})));
  EXPECT_FALSE(is_settled(Json{{"why", "it is wrong: so it says"}}));
  EXPECT_FALSE(is_settled(Json{{"wrong", "yes"}}));
  EXPECT_FALSE(is_settled(Json("wrong")));
}

TEST(Timing, ATimeIsSettled) {
  const Json entry =
      comparison({{"log_ratio", 0.0}, {"low", 0.0}, {"high", 0.0}, {"seconds_a", 2.0}, {"seconds_b", 2.0}});
  EXPECT_EQ(entry.at("ratio"), 1.0);
  EXPECT_EQ(entry.at("reference_seconds"), 2.0);
  EXPECT_TRUE(is_settled(entry));
}

}  // namespace
}  // namespace syslab::grade
