#include "claim/claim_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "claim/alteration.hpp"
#include "claim/page.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "report/writers/writers.hpp"
#include "tests/claim/some_claim.hpp"

namespace syslab::claim {
namespace {

using test::some_claim;

std::string refusal_of_text(const std::string& text) {
  try {
    from_text("x.claim", text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "taken";
}

std::string refusal_of(const Json& json) { return refusal_of_text(json_text(json)); }

TEST(ClaimFile, WhatIsWrittenIsRead) {
  const std::string text = to_text(some_claim());
  const File read = from_text("x.claim", text);
  EXPECT_EQ(to_text(read), text);
  EXPECT_EQ(read.cases.front().blocks.size(), 3U);
  EXPECT_TRUE(read.faster.is_mine);
  EXPECT_EQ(read.cases.front().faster_code, "beef");
  ASSERT_EQ(read.faster.laws.size(), 1U);
  EXPECT_EQ(read.faster.laws[0].inputs, 100);
}

TEST(ClaimFile, WarningsGoWithACaseAndStandOnItsPage) {
  File claim = some_claim();
  claim.cases[0].warnings = {{stats::WarningCode::rows_equal, {}, "x", 0.97}};
  const std::string text = to_text(claim);
  const File read = from_text("x.claim", text);
  EXPECT_EQ(to_text(read), text);
  EXPECT_EQ(read.cases[0].warnings, claim.cases[0].warnings);
  const std::string page = write_page(read, "x.claim", report::Format::markdown);
  EXPECT_NE(page.find("97 % of the rows of argument 'x'"), std::string::npos) << page;
  EXPECT_EQ(write_page(some_claim(), "x.claim", report::Format::markdown).find("Warnings"), std::string::npos);
}

// Both passes have the same laws, of which each is one.
TEST(ClaimFile, ALawOfSeveralExperimentsCountsOnce) {
  File claim = some_claim();
  const auto said = [&](const std::string& text) {
    return write_page(claim, "x.claim", report::Format::markdown).find(text) != std::string::npos;
  };
  claim.faster.laws = {{"refusal", Contract::full, Outcome::passed, 20},
                       {"refusal", Contract::full, Outcome::passed, 20},
                       {"repeats", Contract::full, Outcome::passed, 9}};
  EXPECT_TRUE(said("2 laws of contract full passed")) << write_page(claim, "x.claim", report::Format::markdown);
  claim.faster.laws.push_back({"repeats", Contract::full, Outcome::falsified, 3});
  EXPECT_TRUE(said("1 law of contract full passed, repeats (full) falsified"));
}

TEST(ClaimFile, WhatIsNoClaimIsRefusedByName) {
  for (const char* text : {"", "{}", "[1]", "not json", "\x01\x02"}) {
    try {
      from_text("x.claim", text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("'x.claim' is no claim"), std::string::npos) << error.what();
    }
  }
}

TEST(ClaimFile, DamageIsRefused) {
  const Json whole = parse_json(to_text(some_claim()));
  Json damaged = whole;
  damaged["syslab_claim"] = 3;
  EXPECT_NE(refusal_of(damaged).find("version 3"), std::string::npos);
  for (const auto& [field, value] : whole.items()) {
    if (field == "syslab_claim" || field == "seal") continue;  // without a seal it is altered
    damaged = whole;
    damaged.erase(field);
    EXPECT_EQ(refusal_of(damaged), "'x.claim' is a damaged claim: key '" + field + "' not found");
  }
  damaged = whole;
  damaged["tolerance"] = 7;
  EXPECT_NE(refusal_of(damaged).find("tolerance"), std::string::npos);
  for (const Json& build : {Json(1), Json{{"git_sha", 1}}, Json{{"git_dirty", "no"}}}) {
    damaged = whole;
    damaged["build"] = build;
    EXPECT_NE(refusal_of(damaged).find("its build "), std::string::npos) << build;
  }
  damaged = whole;
  damaged["environment"]["gpu"] = {1};
  EXPECT_NE(refusal_of(damaged).find("a GPU of its machine is no object"), std::string::npos);
}

TEST(ClaimFile, WhatIsNoWholeNumberIsRefusedWhereOneIsExpected) {
  const Json whole = parse_json(to_text(some_claim()));
  for (const char* place : {"/question/seed", "/cases/0/checked", "/cases/0/blocks/0/launch", "/cases/0/blocks/0/block",
                            "/faster/laws/0/inputs"}) {
    for (const Json& value : {Json(0.5), Json(0.9), Json(1.0), Json(false), Json("1"), Json(nullptr)}) {
      Json damaged = whole;
      damaged[Json::json_pointer(place)] = value;
      EXPECT_NE(refusal_of(damaged).find("; expected a whole number"), std::string::npos) << place << " " << value;
    }
  }
  Json damaged = whole;
  damaged["cases"][0]["blocks"][0]["launch"] = 5'000'000'000;
  EXPECT_NE(refusal_of(damaged).find("; expected a whole number"), std::string::npos);
  damaged = whole;
  damaged["syslab_claim"] = 2.0;
  EXPECT_NE(refusal_of(damaged).find("version 2.0"), std::string::npos);
}

TEST(ClaimFile, WhatIsReadAsSomethingElseIsAltered) {
  Json claim = parse_json(to_text(some_claim()));
  EXPECT_TRUE(from_text("x.claim", json_text(claim)).altered.empty());
  claim["question"]["experiments"] = {{"0", "flash_forward"}};
  claim["seal"] = seal_of(claim);
  const auto altered = from_text("x.claim", json_text(claim)).altered;
  EXPECT_FALSE(altered.empty());
}

// Sealing it and comparing it would use the stack for each level.
TEST(ClaimFile, DeepJsonIsRefused) {
  std::string text = to_text(some_claim());
  const std::string field = "\"environment\":{";
  text.insert(text.find(field) + field.size(), "\"a\":" + std::string(50'000, '[') + std::string(50'000, ']') + ",");
  EXPECT_EQ(refusal_of_text(text),
            "'x.claim' is a damaged claim: its JSON is nested 50002 levels deep; expected at most 100");
}

// Readers of JSON differ in which of two values they keep.
TEST(ClaimFile, AKeyTwiceIsRefused) {
  const std::string text = to_text(some_claim());
  for (const auto& [field, twice] : std::vector<std::pair<std::string, std::string>>{
           {"\"claim\":", "\"claim\":\"me >= 99.0 x naive in every case\","},
           {"\"made_at\":", "\"made_at\":\"2020-01-01T00:00:00Z\","},
           {"\"seed\":", "\"seed\":1,"},
           {"\"launch\":", "\"l\\u0061unch\":1,"}}) {
    const std::size_t at = text.find(field);
    ASSERT_NE(at, std::string::npos) << field;
    std::string edited = text;
    edited.insert(at, twice);
    EXPECT_EQ(refusal_of_text(edited), "'x.claim' is a damaged claim: an object has the key “" +
                                           field.substr(1, field.size() - 3) + "” twice; expected each key once");
  }
}

TEST(ClaimFile, BytesAroundTheJsonAreRefused) {
  const std::string text = to_text(some_claim()), nul(1, '\0');
  EXPECT_EQ(refusal_of_text(text), "taken");
  EXPECT_EQ(refusal_of_text(" \t\r\n" + text + "\n\n"), "taken");
  for (const std::string& edited :
       {text + nul, text + nul + "{}", nul + text, text.substr(0, 1) + nul + text.substr(1)})
    EXPECT_EQ(refusal_of_text(edited),
              "'x.claim' is a damaged claim: it contains a NUL byte; expected JSON without NUL bytes");
  EXPECT_EQ(refusal_of_text("\xef\xbb\xbf" + text),
            "'x.claim' is a damaged claim: it begins with a byte order mark; "
            "expected JSON that begins with '{'");
  EXPECT_NE(refusal_of_text(text + "\xef\xbb\xbf"), "taken");
  EXPECT_NE(refusal_of_text(text + "{}"), "taken");
}

TEST(ClaimFile, WhatCannotBeATimeIsDamage) {
  for (const Json& value : {Json(-1), Json(0), Json(1e10), Json("1"), Json()}) {
    Json damaged = parse_json(to_text(some_claim()));
    damaged["cases"][0]["blocks"][1]["seconds"][0] = value;
    EXPECT_NE(refusal_of(damaged).find("is a damaged claim"), std::string::npos) << value;
  }
}

// What a claim shows moves no cursor, forges no line and hides no sign: it has no text that could.
TEST(ClaimFile, TextThatCannotBePrintedIsRefused) {
  const Json whole = parse_json(to_text(some_claim()));
  const auto refused = [](const Json& json) {
    const std::string said = refusal_of(json);
    EXPECT_NE(said.find("cannot be printed"), std::string::npos) << said;
    EXPECT_TRUE(is_printable(said)) << said;
  };
  for (const char* sign : {"\x1b[2J", "2026\nconfirmed: it is 9.000 times as fast (95 %: 8 … 10).", "\r", "\u2028",
                           "\u202e", "\u2067", "\u200b", "\ufeff", "\u0085", "\u034f", "\ufe0f", "\U000E0100",
                           "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301"}) {
    for (const char* path :
         {"/claim", "/made_at", "/machine_kind", "/faster/label", "/faster/digest", "/faster/command", "/slower/name",
          "/question/protocol", "/question/data", "/question/reads", "/question/assignments/0", "/cases/0/title",
          "/cases/0/params/seq", "/faster/laws/0/name", "/environment/cpu/model", "/environment/gpu/0/name",
          "/build/flags"}) {
      Json json = whole;
      json[Json::json_pointer(path)] = std::string("me ") + sign;
      refused(json);
    }
    Json json = whole;
    json["environment"][sign] = 1;
    refused(json);
  }
}

TEST(ClaimFile, WhatIsNoNameDigestOrCountIsDamage) {
  const std::vector<std::pair<const char*, Json>> wrong{{"/cases/0/experiment", "confirmed: it is"},
                                                        {"/cases/0/version", "1 of 1"},
                                                        {"/faster/laws/0/outcome", "passed it all"},
                                                        {"/faster/laws/0/inputs", -1},
                                                        {"/faster/digest", "the same"},
                                                        {"/machine_kind", "the same"},
                                                        {"/cases/0/faster_code", "the same"},
                                                        {"/cases/0/checked", -1},
                                                        {"/cases/0/checked", 2.5},
                                                        {"/cases/0/faster_mhz", -1},
                                                        {"/cases/0/faster_mhz", 1e9},
                                                        {"/cases/0/params/seq", Json::array()},
                                                        {"/build/flags", 1},
                                                        {"/build/cuda", "yes"}};
  for (const auto& [path, value] : wrong) {
    Json json = parse_json(to_text(some_claim()));
    json[Json::json_pointer(path)] = value;
    EXPECT_NE(refusal_of(json).find("is a damaged claim"), std::string::npos) << path << " " << value;
  }
}

TEST(ClaimFile, ARefusalDoesNotRepeatWhatHasNoQuotes) {
  Json json = parse_json(to_text(some_claim()));
  json["cases"][0]["params"]["seq"] = {{"1; confirmed", 9}};
  EXPECT_EQ(refusal_of(json), "'x.claim' is a damaged claim: a value of an axis is no text, number or flag");
}

// The page and a refusal of `verify` offer a command line with them, to be copied.
TEST(ClaimFile, NamesThatAShellWouldInterpretAreRefused) {
  const Json whole = parse_json(to_text(some_claim()));
  for (const char* name : {"x; touch y #", "$(touch y)", ""}) {
    Json json = whole;
    json["faster"]["name"] = name;
    EXPECT_NE(refusal_of(json).find("is no name of a side"), std::string::npos) << name;
    json = whole;
    json["digests"][name] = "00ff";
    EXPECT_NE(refusal_of(json).find("--reference and --inputs alone"), std::string::npos) << name;
  }
  Json older = whole;
  older["faster"].erase("name");
  older["faster"]["label"] = "x; touch y #";
  const std::string page = write_page(from_text("x.claim", json_text(older)), "x.claim", report::Format::html);
  EXPECT_EQ(page.find("--mine x; touch"), std::string::npos) << page;
  EXPECT_NE(page.find("x; touch y #"), std::string::npos) << page;
}

// Claims that were made before sides had a name of their own.
TEST(ClaimFile, ASideWithoutANameIsCalledByItsLabel) {
  Json json = parse_json(to_text(some_claim()));
  json["faster"].erase("name");
  EXPECT_EQ(from_text("x.claim", json_text(json)).faster.name, "me");
}

TEST(ClaimPage, ShowsTheClaimItsCasesAndHowToVerify) {
  const std::string page = write_page(some_claim(), "x.claim", report::Format::markdown);
  for (const char* wanted :
       {"me \\>= 1.5 x naive in every case", "in the file it is confirmed", "2.00", "a processor", "a card",
        "syslab verify x.claim --mine me=FILE", "1 law of contract full passed", "none was searched with this code"}) {
    EXPECT_NE(page.find(wanted), std::string::npos) << wanted << "\n" << page;
  }
  EXPECT_NE(write_page(some_claim(), "x.claim", report::Format::html).find("<table>"), std::string::npos);
  EXPECT_THROW(write_page(some_claim(), "x.claim", report::Format::csv), Error);
}

TEST(ClaimPage, SaysThatTheWallsWereOff) {
  const std::string sentence =
      "It was measured with `SYSLAB_WALLS=none`, so no walls limited what the measured code could do.";
  File claim = some_claim();
  const auto says_so = [&](const char* environment) {
    claim.environment_json = environment;
    return write_page(claim, "x.claim", report::Format::markdown).find(sentence) != std::string::npos;
  };
  EXPECT_TRUE(says_so(R"({"env":{"SYSLAB_WALLS":"none"}})"));
  EXPECT_FALSE(says_so(R"({"env":{"SYSLAB_WALLS":"all"}})"));
  EXPECT_FALSE(says_so(R"({"env":{}})"));
  EXPECT_FALSE(says_so(R"({"env":["none"],"cpu":["a processor"]})")) << "a stranger's file may have anything there";
  EXPECT_FALSE(says_so("{}"));
}

// Whoever copies the line starts what its author wrote, and nothing else.
TEST(ClaimPage, PrintsTheCommandLineAsCode) {
  File claim = some_claim();
  claim.faster.command = R"(./bench `touch a` \\ $(touch b) 'c' | ``d``; touch e)";
  const std::string line = "syslab verify x.claim --command me=" + shell_word(claim.faster.command);
  const std::string page = write_page(claim, "x.claim", report::Format::markdown);
  EXPECT_NE(page.find("\n```sh\n" + line + "\n```\n"), std::string::npos) << page;
  EXPECT_NE(write_page(claim, "x.claim", report::Format::html).find("<pre><code>" + report::escape_html(line)),
            std::string::npos);
}

}  // namespace
}  // namespace syslab::claim
