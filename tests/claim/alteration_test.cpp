// Claims whose files were edited: what is found, and what each is called.
#include "claim/alteration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "claim/derived.hpp"
#include "claim/page.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "tests/claim/some_claim.hpp"

namespace syslab::claim {
namespace {

using Kind = Alteration::Kind;

Json whole() { return parse_json(to_text(test::some_claim())); }

std::vector<Alteration> found_in(const Json& claim) { return from_text("x.claim", json_text(claim)).altered; }

bool has(const std::vector<Alteration>& found, Kind kind, const std::string& where) {
  return std::ranges::any_of(found, [&](const Alteration& one) { return one.kind == kind && one.where == where; });
}

TEST(Alteration, OfWhatWasWrittenThereIsNone) { EXPECT_TRUE(found_in(whole()).empty()); }

TEST(Alteration, APartThatWasEditedIsNamed) {
  const std::vector<std::pair<std::string, std::function<void(Json&)>>> edits{
      {"tolerance", [](Json& claim) { claim["tolerance"] = 0.9; }},
      {"claim", [](Json& claim) { claim["claim"] = "me >= 1.9 x naive in every case"; }},
      {"cases",
       [](Json& claim) {
         claim["cases"][0]["blocks"][0]["seconds"] = {2.2e-3, 1.1e-3, 1.1e-3, 2.2e-3};
       }},
      {"cases", [](Json& claim) { claim["cases"][0]["blocks"] = Json::array(); }},
      {"faster", [](Json& claim) { claim["faster"]["command"] = "./other"; }},
      {"slower", [](Json& claim) { claim["slower"]["digest"] = "beef"; }},
      {"build", [](Json& claim) { claim["build"]["git_sha"] = "beef"; }},
      {"question", [](Json& claim) { claim["question"]["seed"] = 7; }},
      {"made_at", [](Json& claim) { claim["made_at"] = "2020-01-01T00:00:00Z"; }},
      {"warnings", [](Json& claim) { claim["warnings"] = Json::array(); }},
      {"environment", [](Json& claim) { claim["environment"]["cpu"]["model"] = "another"; }}};
  for (const auto& [part, edit] : edits) {
    Json claim = whole();
    edit(claim);
    EXPECT_TRUE(has(found_in(claim), Kind::changed, part)) << part;
  }
}

TEST(Alteration, AClaimWithoutItsSealIsUnsealed) {
  Json claim = whole();
  claim.erase("seal");
  EXPECT_TRUE(has(found_in(claim), Kind::unsealed, "seal"));
  claim = whole();
  claim["seal"].erase("tolerance");
  EXPECT_TRUE(has(found_in(claim), Kind::changed, "tolerance"));
}

// One that the program wrote before it knew seals is no altered one, and says what is not known of it.
TEST(Alteration, AClaimOfVersionOneMayHaveNoSeal) {
  Json claim = whole();
  EXPECT_TRUE(from_text("x.claim", json_text(claim)).is_sealed);
  claim["syslab_claim"] = 1;
  claim.erase("seal");
  const File old = from_text("x.claim", json_text(claim));
  EXPECT_TRUE(old.altered.empty());
  EXPECT_FALSE(old.is_sealed);
  EXPECT_NE(write_page(old, "x.claim", report::Format::markdown).find("no seal"), std::string::npos);
  EXPECT_THROW(write_page(old, "x.claim", report::Format::json), Error);
  // With a seal it is looked at, and what follows from other parts is found in any case.
  claim["seal"] = seal_of(claim);
  EXPECT_TRUE(from_text("x.claim", json_text(claim)).is_sealed);
  claim["tolerance"] = 0.9;
  EXPECT_TRUE(has(found_in(claim), Kind::changed, "tolerance"));
  claim.erase("seal");
  claim["build"]["git_sha"] = "beef";
  EXPECT_TRUE(has(found_in(claim), Kind::revision, "naive"));
}

// Whoever seals anew what was edited is found by what follows from the other parts.
TEST(Alteration, WhatContradictsItselfIsFoundThoughItIsSealedAnew) {
  const auto sealed = [](const std::function<void(Json&)>& edit) {
    Json claim = whole();
    edit(claim);
    claim["seal"] = seal_of(claim);
    return found_in(claim);
  };
  const std::string title = "flash_forward seq=128";
  for (const char* date : {"2026", "2026-13-01T00:00:00Z", "9999-01-01T00:00:00.000Z"}) {
    EXPECT_TRUE(has(sealed([&](Json& claim) { claim["made_at"] = date; }), Kind::date, "made_at")) << date;
  }
  EXPECT_TRUE(sealed([](Json& claim) { claim["made_at"] = "2020-02-29T23:59:59Z"; }).empty());
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["cases"][0]["blocks"] = Json::array(); }), Kind::blocks, title));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["cases"][0]["blocks"].erase(1); }), Kind::blocks, title));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["cases"][0]["blocks"][1]["launch"] = 0; }), Kind::blocks, title));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["cases"][0]["blocks"][1]["block"] = 3; }), Kind::blocks, title));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["cases"][0]["checked"] = 1; }), Kind::checked, title));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["cases"] = Json::array(); }), Kind::times, "cases"));
  // Whoever changes a ratio by hand must change the times as well, and the other way round.
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["cases"][0]["blocks"][1]["log_ratio"] = std::log(0.25); }),
                  Kind::times, title));
  EXPECT_TRUE(
      has(sealed([](Json& claim) { claim["cases"][0]["blocks"][1]["seconds"][0] = 3e-3; }), Kind::times, title));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["build"]["git_sha"] = "beef"; }), Kind::revision, "naive"));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["claim"] = "me >= 2.5 x naive in every case"; }), Kind::not_shown,
                  "me >= 2.5 x naive in every case"));
  EXPECT_TRUE(sealed([](Json& claim) { claim["build"]["git_sha"] = "4f2c"; }).empty());
  // A word about a launch that is left out: those that are there are counted as they were made, and each was checked.
  EXPECT_TRUE(sealed([](Json& claim) { claim["cases"][0]["blocks"][2]["launch"] = 5; }).empty());
  for (const std::int64_t checked : {std::int64_t{6}, std::int64_t{1'000'000'000}}) {
    EXPECT_TRUE(has(sealed([&](Json& claim) { claim["cases"][0]["checked"] = checked; }), Kind::checked, title));
  }
}

TEST(Alteration, WhatFollowsFromOtherPartsIsComputedAgain) {
  const auto sealed = [](const std::function<void(Json&)>& edit) {
    Json claim = whole();
    edit(claim);
    claim["seal"] = seal_of(claim);
    return found_in(claim);
  };
  const std::string title = "flash_forward seq=128";
  const auto titled = [&](const char* text, int ranks = 1) {
    return sealed([&](Json& claim) {
      claim["cases"][0]["title"] = text;
      claim["cases"][0]["ranks"] = ranks;
    });
  };
  // Axes that have their defaults may be left out, and how many ranks there are is no axis.
  for (const char* right : {"flash_forward", "flash_forward seq=128"}) EXPECT_TRUE(titled(right).empty()) << right;
  EXPECT_TRUE(titled("flash_forward seq=128 on 2 ranks", 2).empty());
  EXPECT_TRUE(has(titled("flash_forward seq=128 on 2 ranks", 3), Kind::derived, title + " on 3 ranks"));
  for (const char* wrong : {"", "flash_backward seq=128", "flash_forward seq=65536", "flash_forward seq=128 dtype=bf16",
                            "flash_forward seq=128 seq=128", "flash_forward me", "flash_forward, ten times as fast",
                            "flash_forward seq=128 on 2 ranks"}) {
    EXPECT_EQ(titled(wrong).size(), 1U) << wrong;
    EXPECT_TRUE(has(titled(wrong), Kind::derived, title)) << wrong;
  }
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["faster"]["label"] = "the fastest"; }), Kind::derived, "me"));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["slower"]["name"] = "cudnn"; }), Kind::derived, "naive"));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["machine_kind"] = "beef"; }), Kind::derived, "machine_kind"));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["environment"]["cpu"]["model"] = "another"; }), Kind::derived,
                  "machine_kind"));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["question"]["experiments"] = {"gemm"}; }), Kind::derived, title));
  EXPECT_TRUE(has(sealed([](Json& claim) { claim["cases"].push_back(claim["cases"][0]); }), Kind::doubled, title));
}

TEST(Alteration, ASideIsCalledByItsWordsInTheSentence) {
  EXPECT_EQ(label_of("me"), "me");
  EXPECT_EQ(label_of("strategy=bucketed,bucket_mb=25"), "strategy=bucketed bucket_mb=25");
  EXPECT_EQ(label_of("impl=flash_tiled,seq=8"), "flash_tiled seq=8");
}

TEST(Alteration, WhatNoClaimHasIsFoundThoughItIsSealed) {
  const auto unknown = [](const std::string& where, const std::function<void(Json&)>& edit) {
    Json claim = whole();
    edit(claim);
    claim["seal"] = seal_of(claim);
    return has(found_in(claim), Kind::unknown, where);
  };
  EXPECT_TRUE(unknown("the claim", [](Json& claim) { claim["warnings"] = Json::array(); }));
  EXPECT_TRUE(unknown("question", [](Json& claim) { claim["question"]["of"] = 1; }));
  EXPECT_TRUE(unknown("faster", [](Json& claim) { claim["faster"]["of"] = 1; }));
  EXPECT_TRUE(unknown("faster/laws/0", [](Json& claim) { claim["faster"]["laws"][0]["of"] = 1; }));
  EXPECT_TRUE(unknown("cases/0", [](Json& claim) { claim["cases"][0]["of"] = 1; }));
  EXPECT_TRUE(unknown("cases/0/blocks/0", [](Json& claim) { claim["cases"][0]["blocks"][0]["of"] = 1; }));
  EXPECT_TRUE(unknown("build", [](Json& claim) { claim["build"]["of"] = "x"; }));
  EXPECT_TRUE(unknown("environment", [](Json& claim) { claim["environment"]["of"] = 1; }));
  EXPECT_TRUE(unknown("environment/cpu", [](Json& claim) { claim["environment"]["cpu"]["of"] = 1; }));
  EXPECT_TRUE(unknown("environment/gpu/0", [](Json& claim) { claim["environment"]["gpu"][0]["of"] = 1; }));
  EXPECT_TRUE(unknown("environment/env", [](Json& claim) { claim["environment"]["env"]["VERDICT"] = "confirmed"; }));
  EXPECT_FALSE(unknown("environment/env", [](Json& claim) { claim["environment"]["env"]["OMP_NUM_THREADS"] = "2"; }));
  const Json known{{"code", "rows_equal"}, {"about", "x"}, {"number", 0.97}};
  Json more = known, other = known;
  more["of"] = 1;
  other["code"] = "evil";
  for (const Json& warnings :
       {Json("evil"), Json{{"code", "evil"}}, Json::array({other}), Json::array({known, more})}) {
    EXPECT_TRUE(unknown("cases/0/warnings", [&](Json& claim) { claim["cases"][0]["warnings"] = warnings; }))
        << warnings;
  }
  EXPECT_FALSE(unknown("cases/0/warnings", [&](Json& claim) { claim["cases"][0]["warnings"] = Json::array({known}); }));
}

TEST(Alteration, IsShownOnThePageAndNotSealedAgain) {
  Json claim = whole();
  claim["tolerance"] = 0.9;
  const File file = from_text("x.claim", json_text(claim));
  EXPECT_NE(write_page(file, "x.claim", report::Format::markdown).find("tolerance: found SHA"), std::string::npos);
  EXPECT_THROW(write_page(file, "x.claim", report::Format::json), Error);
}

TEST(Statement, IsWrittenToTheLastDigitOfItsFactor) {
  EXPECT_EQ(to_string(parse_statement("a >= 2.00000149 x b")), "a >= 2.00000149 x b in every case");
  EXPECT_EQ(to_string(parse_statement("a >= 1.10 x b")), "a >= 1.1 x b in every case");
}

}  // namespace
}  // namespace syslab::claim
