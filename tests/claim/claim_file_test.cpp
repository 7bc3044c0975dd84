#include "claim/claim_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "claim/page.hpp"
#include "core/error.hpp"
#include "core/json_text.hpp"

namespace syslab::claim {
namespace {

File some_claim() {
  File file;
  file.statement = parse_statement("me >= 1.5 x naive");
  file.question.experiments = {"flash_forward"};
  file.question.assignments = {"seq=128"};
  file.question.protocol = "kernel";
  file.question.data = "normal";
  file.faster = {"me", true, "00ff", "me", "", {{"attention.linearity", "full", "passed", 100}}};
  file.slower = {"naive", false, "4f2c", "naive", "", {}};
  Case one{"flash_forward seq=128", "flash_forward", "2", R"({"seq":128})", 3, {}, {}, {}};
  for (int launch = 0; launch < 3; ++launch) {
    one.blocks.push_back({launch, 0, "ABBA", {2e-3, 1e-3, 1e-3, 2e-3}, std::log(0.5)});
  }
  one.faster_code = "beef";
  file.cases = {one};
  file.made_at = "2026-05-01T12:34:56.789Z";
  file.machine_kind = "abcd";
  file.environment_json = R"({"cpu":{"model":"a processor"},"gpu":[{"name":"a card"}]})";
  file.build_json = "{}";
  return file;
}

std::string refusal_of(const Json& json) {
  try {
    from_text("x.claim", json_text(json));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "taken";
}

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

TEST(ClaimFile, AGpusClockGoesWithACaseAndIsToldWhereItDiffers) {
  File claim = some_claim();
  claim.cases[0].faster_mhz = 1980;
  const File read = from_text("x.claim", to_text(claim));
  Case here = read.cases[0];
  EXPECT_EQ(here.faster_mhz, 1980);
  EXPECT_EQ(here.slower_mhz, 0);
  here.faster_mhz = 1965;
  EXPECT_TRUE(differing_clocks(read, read.cases[0], here).empty()) << "a step of the clock";
  here.faster_mhz = 1755;
  here.slower_mhz = 1500;
  EXPECT_EQ(
      differing_clocks(read, read.cases[0], here),
      std::vector<std::string>{"the GPU's clock under me in flash_forward seq=128: claim 1980 MHz, here 1755 MHz"});
}

// Both passes have the same laws, of which each is one.
TEST(ClaimFile, ALawOfSeveralExperimentsCountsOnce) {
  File claim = some_claim();
  const auto said = [&](const std::string& text) {
    return write_page(claim, "x.claim", report::Format::markdown).find(text) != std::string::npos;
  };
  claim.faster.laws = {
      {"refusal", "full", "passed", 20}, {"refusal", "full", "passed", 20}, {"repeats", "full", "passed", 9}};
  EXPECT_TRUE(said("2 laws of contract full passed")) << write_page(claim, "x.claim", report::Format::markdown);
  claim.faster.laws.push_back({"repeats", "full", "falsified", 3});
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
  damaged["syslab_claim"] = 2;
  EXPECT_NE(refusal_of(damaged).find("version 2"), std::string::npos);
  for (const auto& [field, value] : whole.items()) {
    if (field == "syslab_claim") continue;
    damaged = whole;
    damaged.erase(field);
    EXPECT_EQ(refusal_of(damaged), "'x.claim' is a damaged claim: key '" + field + "' not found");
  }
  damaged = whole;
  damaged["tolerance"] = 7;
  EXPECT_NE(refusal_of(damaged).find("tolerance"), std::string::npos);
  damaged = whole;
  damaged["environment"]["gpu"] = {1};
  EXPECT_NE(refusal_of(damaged).find("a GPU of its machine is no object"), std::string::npos);
}

// Whoever changes a ratio by hand must change the times as well, and then they tell.
TEST(ClaimFile, ARatioIsThatOfItsTimes) {
  Json forged = parse_json(to_text(some_claim()));
  forged["cases"][0]["blocks"][1]["log_ratio"] = std::log(0.25);
  EXPECT_NE(refusal_of(forged).find("ratio is not that of its times"), std::string::npos);
  forged["cases"][0]["blocks"][1]["log_ratio"] = std::log(0.5);
  EXPECT_EQ(refusal_of(forged), "taken");
  forged["cases"][0]["blocks"][1]["seconds"][0] = -1;
  EXPECT_NE(refusal_of(forged).find("is no time"), std::string::npos);
}

TEST(ClaimFile, WhatItShowsMovesNoCursor) {
  Json json = parse_json(to_text(some_claim()));
  for (const char* field : {"label", "command"}) json["faster"][field] = "me\x1b[2J";
  const File read = from_text("x.claim", json_text(json));
  for (const std::string& shown : {read.faster.label, read.faster.command}) {
    EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  }
  json["question"]["reads"] = "took\x1b[2J: {} ms";
  EXPECT_NE(refusal_of(json).find("cannot be printed"), std::string::npos);
}

// The page and a refusal of `verify` offer a command line with them, to be copied.
TEST(ClaimFile, NamesThatAShellWouldInterpretAreRefused) {
  const Json whole = parse_json(to_text(some_claim()));
  for (const char* name : {"x; touch y #", "$(touch y)", "me\x1b[2J", ""}) {
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
       {"me \\>= 1.5 x naive in every case", "it was made it is confirmed", "2.00", "a processor", "a card",
        "syslab verify x.claim --mine me=FILE", "1 law of contract full passed", "none was searched with this code"}) {
    EXPECT_NE(page.find(wanted), std::string::npos) << wanted << "\n" << page;
  }
  EXPECT_NE(write_page(some_claim(), "x.claim", report::Format::html).find("<table>"), std::string::npos);
  EXPECT_THROW(write_page(some_claim(), "x.claim", report::Format::csv), Error);
}

}  // namespace
}  // namespace syslab::claim
