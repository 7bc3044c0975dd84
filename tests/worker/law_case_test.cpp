#include "worker/cases/law_case.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syslab::worker {
namespace {

// Runs the law "toy.law", which answers with `result`, and keeps what it was asked and what it reported.
struct Search {
  check::LawRequest asked;
  std::vector<CheckRecord> reported;
  Json facts;
  std::string thrown;  // "CheckFailed: …"

  Search(CaseRequest request, const check::LawResult& result) {
    request.task = Task::law;
    CaseContext context(std::move(request), [this](const Record& record) {
      if (const auto* check = std::get_if<CheckRecord>(&record)) reported.push_back(*check);
      if (const auto* fact = std::get_if<FactRecord>(&record)) facts = Json::parse(fact->json);
    });
    const check::Law law{"toy.law", "a statement", [&](const check::LawRequest& law_request) {
                           asked = law_request;
                           return result;
                         }};
    try {
      run_law(context, {law});
    } catch (const CheckFailed& failed) {
      thrown = std::string("CheckFailed: ") + failed.what();
    } catch (const Unsupported& unsupported) {
      thrown = std::string("Unsupported: ") + unsupported.what();
    } catch (const Error& error) {
      thrown = std::string("Error: ") + error.what();
    }
  }
};

CaseRequest request_for(const std::string& law) {
  CaseRequest request;
  request.law = law;
  request.seed = 18446744073709551615ULL;
  request.law_cases = 25;
  return request;
}

TEST(LawCase, TheRequestReachesTheSearch) {
  CaseRequest request = request_for("toy.law");
  request.params.set("contract", std::string("handout"));
  request.reproduce = "reproduce=abc";
  const Search search(request, {.outcome = check::Outcome::passed});
  EXPECT_EQ(search.thrown, "");
  EXPECT_EQ(search.asked.contract, check::Contract::handout);
  EXPECT_EQ(search.asked.seed, 18446744073709551615ULL);
  EXPECT_EQ(search.asked.max_success, 25);
  EXPECT_EQ(search.asked.reproduce, "reproduce=abc");
}

TEST(LawCase, WithoutAContractTheFullOneHolds) {
  const Search search(request_for("toy.law"), {.outcome = check::Outcome::passed});
  EXPECT_EQ(search.asked.contract, check::Contract::full);
  ASSERT_EQ(search.reported.size(), 1U);
  EXPECT_EQ(search.reported[0].contract, check::Contract::full);
  EXPECT_EQ(search.reported[0].outcome, Outcome::passed);
}

TEST(LawCase, ACounterexampleIsReportedWholeAndFailsTheCase) {
  check::LawResult result{
      .outcome = check::Outcome::falsified, .cases_run = 7, .shrinks_tried = 30, .shrinks_taken = 4};
  result.seed = 18446744073709551615ULL;
  result.reproduce = "reproduce=xyz";
  result.counterexample = {{"rows", "17"}, {"dtype", "fp16"}};
  result.message = "y[16]: found 0";
  result.finding = {.kind = FindingKind::wrong_value, .cause = "no mask", .first_wrong = "y[16]"};
  result.worst_error = 2.0;
  result.tolerance = 0.5;
  const Search search(request_for("toy.law"), result);
  EXPECT_EQ(search.thrown, "CheckFailed: y[16]: found 0");
  ASSERT_EQ(search.reported.size(), 1U);
  const CheckRecord& record = search.reported[0];
  EXPECT_EQ(record.name, "toy.law");
  EXPECT_EQ(record.outcome, Outcome::falsified);
  EXPECT_EQ(record.cases_run, 7);
  EXPECT_EQ(record.shrinks_tried, 30);
  EXPECT_EQ(record.shrinks_taken, 4);
  EXPECT_EQ(record.seed, "18446744073709551615");
  EXPECT_EQ(record.reproduce, "reproduce=xyz");
  EXPECT_EQ(record.counterexample_json, R"({"dtype":"fp16","rows":"17"})");
  EXPECT_EQ(record.finding, result.finding);
  EXPECT_EQ(record.worst_error, 2.0);
  EXPECT_EQ(record.tolerance, 0.5);
}

TEST(LawCase, WhatWasNotSearchedNeverLooksPassed) {
  struct Spoken {
    check::Outcome outcome;
    std::string thrown;
  };
  for (const auto& [outcome, thrown] :
       {Spoken{check::Outcome::gave_up, "Unsupported: gave up after 3 cases: too many discarded"},
        Spoken{check::Outcome::not_run, "Unsupported: not searched: too many discarded"}}) {
    const Search search(request_for("toy.law"), {.outcome = outcome, .cases_run = 3, .message = "too many discarded"});
    EXPECT_EQ(search.thrown, thrown);
    ASSERT_EQ(search.reported.size(), 1U);
    EXPECT_EQ(search.reported[0].outcome, outcome);
  }
  const Search broken(request_for("toy.law"), {.outcome = check::Outcome::error, .message = "its process is gone"});
  EXPECT_EQ(broken.thrown, "CheckFailed: its process is gone");
  EXPECT_EQ(broken.reported.at(0).outcome, Outcome::error);
}

TEST(LawCase, ALawThatSaysNothingOfThisImplementationIsToldApart) {
  const auto facts = [](bool applies) {
    return Search(request_for("toy.law"), {.outcome = check::Outcome::not_run, .applies = applies}).facts;
  };
  EXPECT_EQ(facts(false).value("applies", true), false);
  EXPECT_FALSE(facts(true).contains("applies"));
}

TEST(LawCase, WhatLookingAtWhatIsPromisedTookIsNotOfItsShare) {
  const auto seconds = [](std::chrono::nanoseconds looking) {
    const Search search(request_for("toy.law"), {.outcome = check::Outcome::passed, .looking_in_promised = looking});
    return search.facts.at("law_seconds").get<double>();
  };
  EXPECT_GT(seconds(std::chrono::nanoseconds(0)), 0);
  EXPECT_EQ(seconds(std::chrono::hours(1)), 0);
}

TEST(LawCase, AnUnknownLawIsAnsweredWithTheNearest) {
  const Search search(request_for("toy.low"), {.outcome = check::Outcome::passed});
  EXPECT_EQ(search.thrown.rfind("Error: ", 0), 0U);
  EXPECT_NE(search.thrown.find("toy.law"), std::string::npos) << search.thrown;
  EXPECT_TRUE(search.reported.empty());
}

}  // namespace
}  // namespace syslab::worker
