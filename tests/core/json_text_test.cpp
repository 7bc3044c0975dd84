#include "core/text/json_text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syslab {
namespace {

TEST(JsonText, OfEqualValuesIsEqual) {
  EXPECT_EQ(json_text(Json{{"b", 1}, {"a", {true, nullptr}}}), R"({"a":[true,null],"b":1})");
  EXPECT_EQ(json_text(Json{{"a", {true, nullptr}}, {"b", 1}}), R"({"a":[true,null],"b":1})");
}

TEST(JsonText, BytesThatAreNoUtf8AreAnErrorOrRepaired) {
  EXPECT_THROW(json_text(Json("a\xff")), Json::type_error);
  EXPECT_EQ(repaired_json_text(Json("a\xff")), "\"a\uFFFD\"");
}

TEST(JsonText, IsReadBack) {
  EXPECT_EQ(parse_json(R"( {"b": [1.5]} )"), (Json{{"b", {1.5}}}));
  EXPECT_EQ(json_or_discarded("7"), Json(7));
}

TEST(JsonText, ThatIsNoneIsAnErrorOrDiscarded) {
  for (const char* text : {"", "{", "{} {}", "nan"}) {
    EXPECT_THROW(parse_json(text), Json::parse_error) << text;
    EXPECT_TRUE(json_or_discarded(text).is_discarded()) << text;
  }
}

TEST(JsonText, KeysThatAnObjectHasTwiceAreFound) {
  for (const char* text : {"{}", "5", "", "{", R"({"a":{"a":[{"a":1},{"a":1}]},"b":"a"})"})
    EXPECT_EQ(repeated_key(text), std::nullopt) << text;
  EXPECT_EQ(repeated_key(R"({"a":1,"b":2,"a":1})"), "a");
  EXPECT_EQ(repeated_key(R"({"b":[{"x":1,"\u0078":{}}]})"), "x");
  EXPECT_EQ(repeated_key(R"({"":1,"":1})"), "");
}

TEST(JsonText, WhatKeepsATextFromBeingAnObjectIsNamedWithItsPlace) {
  for (const char* text : {"{}", " {\"a\": 1e308}\n", "{\"a\":[{\"a\":1}]}", "{\"\xc3\xa4\":null}"}) {
    EXPECT_EQ(object_fault(text), "") << text;
  }
  const auto has = [](const std::string& text, std::initializer_list<const char*> words) {
    const std::string fault = object_fault(text);
    for (const char* word : words) EXPECT_NE(fault.find(word), std::string::npos) << text << ": " << fault;
  };
  has("", {"empty; expected a JSON object"});
  has(" \n", {"empty"});
  has("[{}]", {"a list; expected a JSON object"});
  has("null", {"null; expected"});
  has("true", {"true or false; expected"});
  has("\"a\"", {"a text; expected"});
  has("1", {"a number; expected"});
  has(R"({"a": NaN})", {"from column 7 on", "invalid literal"});
  has("{\"b\": 1,\n \"a\": NaN}", {"from line 2, column 7 on"});
  has(R"({"a": [1, )", {"column 11", "unexpected end of input"});
  has(R"({"a": 1e400})", {"the number 1e400", "column 11", "beyond fp64"});
  has(R"({"a": -1e400})", {"the number -1e400", "beyond fp64"});
  has("{\"\xc3\xa4\": \"m\xe4x\"}", {"not UTF-8 (byte 0xe4 in column 9)"});
  has(R"({"a": "\ud800"})", {"surrogate"});
  has(R"({"a": {"b": 1, "b": 2}})", {"has the key 'b' twice; expected each key once"});
  has("{\"a\": \"\x1b[31m\"}", {"control character"});
  has(std::string(200, '['), {"nested 200 levels deep; expected at most 100"});
  has("{\"" + std::string(100'000, 'a') + "\": 1, \"" + std::string(100'000, 'a') + "\": 2}", {"twice"});
  EXPECT_LT(object_fault("{\"a\": \"" + std::string(100'000, 'a')).size(), 400);
}

TEST(JsonText, ThatNestsTooDeepIsAnErrorOrDiscarded) {
  const auto lists = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  for (const std::string& text : {lists(kMostLevels), "[\"" + lists(200) + "\\\"" + lists(200) + "\", {}]",
                                  "[" + std::string(R"({"a": [1]},)") + lists(kMostLevels - 1) + "]"}) {
    EXPECT_EQ(nesting_fault(text), "");
    EXPECT_EQ(json_text(parse_json(text)), json_text(json_or_discarded(text)));
  }
  for (const std::string& text : {lists(kMostLevels + 1), R"({"a":)" + lists(kMostLevels) + "}", lists(200'000),
                                  R"(["\\",)" + lists(kMostLevels) + "]"}) {
    EXPECT_TRUE(json_or_discarded(text).is_discarded());
    try {
      parse_json(text);
      FAIL() << "read";
    } catch (const Json::exception& error) {
      EXPECT_EQ(error.what(), "the JSON is " + nesting_fault(text));
    }
  }
  EXPECT_EQ(nesting_fault(lists(200'000)), "nested 200000 levels deep; expected at most 100");
}

}  // namespace
}  // namespace syslab
