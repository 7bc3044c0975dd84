#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"
#include "session/session.hpp"

namespace syslab::cli {
namespace {

std::string error_of(const std::string& text) {
  try {
    conditions_from_json(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::store) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error of " << text;
  return {};
}

TEST(ConditionsFromJson, AreThoseThatWereStored) {
  Conditions conditions;
  conditions.protocol = "quick";
  conditions.launches = 7;
  conditions.try_oom = true;
  conditions.mine_device = DeviceKind::cuda;
  const Conditions again = conditions_from_json(to_json(conditions).dump());
  EXPECT_EQ(to_json(again), to_json(conditions));
}

TEST(ConditionsFromJson, NameTheColumnAndTheFieldOfAnotherType) {
  EXPECT_EQ(error_of(R"({"name": "quick", "launches": "3"})"),
            "a stored run.protocol has \"3\" as 'launches'; expected a whole number in its range");
  EXPECT_EQ(error_of(R"({"name": "quick", "launches": 3.5})"),
            "a stored run.protocol has 3.5 as 'launches'; expected a whole number in its range");
  EXPECT_EQ(error_of(R"({"name": "quick", "launches": 99999999999})"),
            "a stored run.protocol has 99999999999 as 'launches'; expected a whole number in its range");
  EXPECT_EQ(error_of(R"({"name": "quick", "try_oom": 1})"),
            "a stored run.protocol has 1 as 'try_oom'; expected true or false");
  EXPECT_EQ(error_of(R"({"name": ["quick"]})"), "a stored run.protocol has [\"quick\"] as 'name'; expected a text");
  EXPECT_EQ(error_of("{}"), "a stored run.protocol has no 'name'; expected a text");
  EXPECT_EQ(error_of("{oops"), "a stored run.protocol is malformed JSON; expected a JSON object");
  EXPECT_EQ(error_of("[]"), "a stored run.protocol is no JSON object; expected one");
  EXPECT_EQ(error_of(std::string(200, '[') + std::string(200, ']')),
            "a stored run.protocol is nested 200 levels deep; expected at most 100");
}

}  // namespace
}  // namespace syslab::cli
