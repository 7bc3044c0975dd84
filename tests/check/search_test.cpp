#include "check/search.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <thread>

#include "core/error.hpp"
#include "core/refusal.hpp"

namespace syslab::check {
namespace {

using Clock = std::chrono::steady_clock;

void length_stays_below_40(Observation& observation) {
  const int length = *rc::gen::inRange(0, 1000).as("length");
  const int other = *rc::gen::inRange(0, 1000).as("other");
  observation.record(length, 40);
  if (length >= 40) throw Error(ErrorKind::check, "row " + std::to_string(length) + " is wrong");
  RC_ASSERT(other >= 0);
}

TEST(Search, PassesAPropertyThatHoldsAndReportsTheWorstThatItSaw) {
  int calls = 0, largest = 0;
  const LawResult result = search("t.holds", {.seed = 7, .max_success = 25}, [&](Observation& observation) {
    const int number = *rc::gen::inRange(0, 10).as("n");
    observation.record(number, 100.0);
    largest = std::max(largest, number);
    ++calls;
  });
  EXPECT_EQ(result.outcome, Outcome::passed);
  EXPECT_EQ(result.cases_run, 25);
  EXPECT_EQ(calls, 25);
  EXPECT_EQ(result.seed, 7U);
  EXPECT_DOUBLE_EQ(*result.worst_error, largest);
  EXPECT_TRUE(result.reproduce.empty());
  EXPECT_TRUE(result.counterexample.empty());
}

TEST(Search, FindsTheSmallestCounterexampleAndTellsItsNames) {
  const LawResult result = search("t.length", {.seed = 3}, length_stays_below_40);
  EXPECT_EQ(result.outcome, Outcome::falsified);
  EXPECT_EQ(result.message, "row 40 is wrong");
  EXPECT_EQ(result.counterexample.at("length"), "40");
  EXPECT_EQ(result.counterexample.at("other"), "0");
  EXPECT_DOUBLE_EQ(*result.worst_error, 40.0);
  EXPECT_DOUBLE_EQ(*result.tolerance, 40.0);
  EXPECT_GT(result.shrinks_tried, result.shrinks_taken);
  EXPECT_GT(result.shrinks_taken, 0);
  EXPECT_FALSE(result.reproduce.empty());
}

TEST(Search, GoesOnWithOtherSeedsUntilItsTimeIsSpent) {
  std::set<int> drawn;
  const auto begin = Clock::now();
  const LawResult result =
      search("t.on", {.seed = 1, .max_success = 10, .search_time = std::chrono::milliseconds(60)}, [&](Observation&) {
        drawn.insert(*rc::gen::inRange(0, 1'000'000));  // microseconds: a busy machine has time for many rounds, too
      });
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(60));
  EXPECT_EQ(result.outcome, Outcome::passed);
  EXPECT_GT(result.cases_run, 10);
  EXPECT_EQ(result.cases_run % 10, 0);
  EXPECT_GT(drawn.size(), 15U) << "the rounds draw the same";
}

// A time that passes by itself, a second a try.
struct SlowTries {
  int tries = 0;
  LawRequest request(std::chrono::seconds most) {
    return {.seed = 1, .max_success = 100, .most_time = most, .spent = [this] { return std::chrono::seconds(tries); }};
  }
};

TEST(Search, BeginsNoInputOnceItsTimeIsOverAndCountsThoseThatItTried) {
  SlowTries slow;
  const LawResult result =
      search("t.slow", slow.request(std::chrono::seconds(30)), [&](Observation&) { ++slow.tries; });
  EXPECT_EQ(result.outcome, Outcome::passed);
  EXPECT_EQ(result.cases_run, 30);
  EXPECT_EQ(slow.tries, 30);
}

TEST(Search, TriesTheFirstFewThoughTheyTakeLonger) {
  SlowTries slow;
  const LawResult result = search("t.slow", slow.request(std::chrono::seconds(2)), [&](Observation&) { ++slow.tries; });
  EXPECT_EQ(result.outcome, Outcome::passed);
  EXPECT_EQ(result.cases_run, LawRequest::kFewestCases);
}

TEST(Search, TriesOneWhereTheFirstFewWouldTakeManyTimesItsTime) {
  SlowTries slow;
  const LawResult result =
      search("t.slow", slow.request(std::chrono::seconds(1)), [&](Observation&) { slow.tries += 10; });
  EXPECT_EQ(result.outcome, Outcome::passed);
  EXPECT_EQ(result.cases_run, 1);
}

TEST(Search, WhatItFindsInItsTimeIsMadeSmallBehindIt) {
  SlowTries slow;
  const LawResult result = search("t.slow", slow.request(std::chrono::seconds(6)), [&](Observation&) {
    const int number = *rc::gen::inRange(100, 1000).as("n");
    if (++slow.tries >= 6) throw Error(ErrorKind::check, "n is " + std::to_string(number));
  });
  EXPECT_EQ(result.outcome, Outcome::falsified);
  EXPECT_EQ(result.message, "n is 100");
}

TEST(Search, ShrinksAndReplaysWhatALaterRoundFinds) {
  int calls = 0;
  const auto late = [&](Observation&) {
    const int number = *rc::gen::inRange(0, 1000).as("n");
    if (++calls > 30 && number >= 40) throw Error(ErrorKind::check, "n is " + std::to_string(number));
  };
  const LawResult result =
      search("t.late", {.seed = 1, .max_success = 10, .search_time = std::chrono::seconds(20)}, late);
  EXPECT_EQ(result.outcome, Outcome::falsified);
  EXPECT_EQ(result.message, "n is 40");
  EXPECT_GE(result.cases_run, 30);
  EXPECT_EQ(search("t.late", {.reproduce = result.reproduce}, late).message, "n is 40");
}

TEST(Search, ReplaysTheSameCounterexampleFromItsString) {
  const LawResult found = search("t.length", {.seed = 3}, length_stays_below_40);
  const LawResult replayed = search("t.length", {.seed = 99, .reproduce = found.reproduce}, length_stays_below_40);
  EXPECT_EQ(replayed.outcome, Outcome::falsified);
  EXPECT_EQ(replayed.counterexample, found.counterexample);
  EXPECT_EQ(replayed.message, found.message);
  EXPECT_EQ(replayed.reproduce, found.reproduce);
  EXPECT_EQ(replayed.worst_error, found.worst_error);
  EXPECT_EQ(replayed.cases_run, 1);
}

TEST(Search, RepeatsItselfForTheSameSeedOnly) {
  const auto draw = [](std::uint64_t seed) {
    std::vector<int> drawn;
    search("t.seed", {.seed = seed, .max_success = 10},
           [&](Observation&) { drawn.push_back(*rc::gen::inRange(0, 1'000'000)); });
    return drawn;
  };
  EXPECT_EQ(draw(5), draw(5));
  EXPECT_NE(draw(5), draw(6));
}

TEST(Search, SaysThatACounterexampleHoldsOnceItIsMended) {
  const LawResult found = search("t.length", {.seed = 3}, length_stays_below_40);
  const LawResult replayed = search("t.length", {.reproduce = found.reproduce}, [](Observation&) {
    *rc::gen::inRange(0, 1000).as("length");
    *rc::gen::inRange(0, 1000).as("other");
  });
  EXPECT_EQ(replayed.outcome, Outcome::passed);
  EXPECT_EQ(replayed.message, "the counterexample held in its one try");
}

TEST(Search, RefusesStringsOfAnotherLawOrContractOrOfNone) {
  const LawResult found = search("t.length", {.seed = 3}, length_stays_below_40);
  EXPECT_THROW(search("t.other", {.reproduce = found.reproduce}, length_stays_below_40), Error);
  EXPECT_THROW(search("t.length", {.contract = Contract::handout, .reproduce = found.reproduce}, length_stays_below_40),
               Error);
  EXPECT_THROW(search("t.length", {.reproduce = "reproduce=nonsense"}, length_stays_below_40), Error);
}

// Without a budget this takes tens of seconds: each of thousands of shrinks costs a millisecond.
void slow(Observation&) {
  const auto values = *rc::gen::container<std::vector<int>>(200, rc::gen::inRange(0, 10'000)).as("values");
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  int sum = 0;
  for (const int value : values) sum += value % 7;
  if (sum > 50) throw Error(ErrorKind::check, "sum " + std::to_string(sum));
}

TEST(Search, EndsASlowShrinkWhenItsTimeIsSpent) {
  const auto begin = Clock::now();
  const LawResult result =
      search("t.slow", {.seed = 1, .shrink_tries = 1'000'000, .shrink_time = std::chrono::milliseconds(150)}, slow);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
  EXPECT_EQ(result.outcome, Outcome::falsified);
  EXPECT_EQ(result.message.rfind("sum ", 0), 0U) << result.message;
  EXPECT_EQ(search("t.slow", {.reproduce = result.reproduce}, slow).message, result.message);
}

TEST(Search, EndsAShrinkWhenItsTriesAreSpent) {
  int calls = 0;
  const LawResult result = search("t.tries", {.seed = 1, .shrink_tries = 10}, [&](Observation& observation) {
    ++calls;
    slow(observation);
  });
  EXPECT_EQ(result.outcome, Outcome::falsified);
  // Cases until the first failure, ten tries, and the confirmation, which walks the path again.
  EXPECT_LT(calls, 60);
}

TEST(Search, GivesUpWhenPreconditionsLeaveNothing) {
  const LawResult result = search("t.pre", {.seed = 1}, [](Observation&) {
    const int number = *rc::gen::inRange(0, 100).as("n");
    RC_PRE(number > 1000);
  });
  EXPECT_EQ(result.outcome, Outcome::gave_up);
  EXPECT_EQ(result.cases_run, 0);
  EXPECT_FALSE(result.message.empty());
}

TEST(Search, PassesOverInputsThatTheImplementationDoesNotSupport) {
  const auto picky = [](Observation&) {
    if (*rc::gen::inRange(0, 100).as("n") % 3 == 0) throw Unsupported("no multiples of three");
  };
  const LawResult some = search("t.some", {.seed = 1, .max_success = 50}, picky);
  EXPECT_EQ(some.outcome, Outcome::passed) << some.message;
  EXPECT_EQ(some.cases_run, 50);
  const LawResult none = search("t.none", {.seed = 1}, [](Observation&) { throw Unsupported("nothing at all"); });
  EXPECT_EQ(none.outcome, Outcome::not_run);
  EXPECT_EQ(none.message, "nothing at all");
}

TEST(Search, HasNotRunWhenNoCaseWasAskedFor) {
  EXPECT_EQ(search("t.none", {.max_success = 0}, [](Observation&) {}).outcome, Outcome::not_run);
}

TEST(Search, FalsifiesWithTheTextOfWhateverThePropertyThrows) {
  const auto message = [](const std::function<void(Observation&)>& property) {
    const LawResult result = search("t.throws", {.seed = 1}, property);
    EXPECT_EQ(result.outcome, Outcome::falsified);
    return result.message;
  };
  EXPECT_EQ(message([](Observation&) { throw std::runtime_error("no tile"); }), "threw: no tile");
  EXPECT_EQ(message([](Observation&) { throw Error(ErrorKind::usage, "bad shape"); }), "threw Error(usage): bad shape");
  EXPECT_EQ(message([](Observation&) { throw 42; }), "threw an object that is no std::exception");
}

TEST(Search, IsInErrorAndStopsAskingWhenTheImplementationIsGone) {
  int calls = 0;
  const LawResult result = search("t.gone", {.seed = 1}, [&](Observation&) {
    ++calls;
    const int number = *rc::gen::inRange(0, 1000).as("n");
    if (number > 5) throw Error(ErrorKind::comm, "the worker closed its pipe");
  });
  EXPECT_EQ(result.outcome, Outcome::error);
  EXPECT_NE(result.message.find("the worker closed its pipe"), std::string::npos);
  EXPECT_EQ(result.shrinks_taken, 0);
  EXPECT_LE(calls, result.cases_run);
  EXPECT_EQ(result.counterexample.count("n"), 1U);  // the case that met the end
  EXPECT_FALSE(result.reproduce.empty());
}

TEST(Search, SaysWhenAFailureDoesNotRepeat) {
  int calls = 0;
  const LawResult result = search("t.flaky", {.seed = 1, .shrink_tries = 0}, [&](Observation&) {
    *rc::gen::inRange(0, 1000).as("n");
    if (++calls == 3) throw Error(ErrorKind::check, "once");
  });
  EXPECT_EQ(result.outcome, Outcome::falsified);
  EXPECT_NE(result.message.find("once"), std::string::npos);
  EXPECT_NE(result.message.find("does not repeat itself"), std::string::npos) << result.message;
}

TEST(Search, ReplaysUntilWhatStrikesNowAndThenIsSeenAgain) {
  int calls = 0;
  const auto every_fiftieth = [&](Observation&) {
    *rc::gen::inRange(0, 1000).as("n");
    if (++calls % 50 == 0) throw Error(ErrorKind::check, "a slip");
  };
  const LawResult found = search("t.rare", {.seed = 1}, every_fiftieth);
  ASSERT_EQ(found.outcome, Outcome::falsified);
  EXPECT_NE(found.message.find("it strikes now and then"), std::string::npos) << found.message;
  const LawResult again = search("t.rare", {.reproduce = found.reproduce, .replay_tries = 200}, every_fiftieth);
  EXPECT_EQ(again.outcome, Outcome::falsified);
  EXPECT_GT(again.cases_run, 1);
  EXPECT_NE(again.message.find("seen again at try"), std::string::npos) << again.message;

  const LawResult held = search("t.rare", {.reproduce = found.reproduce, .replay_tries = 7},
                                [](Observation&) { *rc::gen::inRange(0, 1000).as("n"); });
  EXPECT_EQ(held.outcome, Outcome::passed);
  EXPECT_EQ(held.message, "the counterexample held in all 7 tries");
}

// Wrong from 40 on, and the end of the process from 500 on.
void ends_from_500_on(Observation& observation) {
  const int length = *rc::gen::inRange(0, 1000).as("length");
  if (length >= 500) throw FoundFault(ErrorKind::check, FindingKind::write_outside, "it writes there");
  if (length >= 40) throw Error(ErrorKind::check, "it is wrong");
  observation.record(0, 1);
}

TEST(Search, KeepsTheKindOfAFaultWhileItShrinks) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const LawResult result = search("t.kinds", {.seed = seed}, ends_from_500_on);
    const int smallest = std::stoi(result.counterexample.at("length"));
    EXPECT_EQ(result.finding.kind == FindingKind::write_outside, smallest >= 500) << smallest;
    EXPECT_EQ(result.finding.kind == FindingKind::wrong_value, smallest < 500) << smallest;
    EXPECT_EQ(smallest, result.finding.kind == FindingKind::write_outside ? 500 : 40);
  }
}

TEST(Search, KeepsWhatIsKnownOfAFault) {
  const LawResult wrong = search("t.known", {}, [](Observation&) {
    throw FoundFault(ErrorKind::check, FindingKind::wrong_value, "2", {}, {}, {.about = "q", .cause = "no mask"});
  });
  EXPECT_EQ(wrong.finding, (Finding{.kind = FindingKind::wrong_value, .about = "q", .cause = "no mask"}));
  int tries = 0;
  const auto at_first = [&](Observation&) {
    if (++tries == 1) throw Error(ErrorKind::check, "now");
  };
  EXPECT_TRUE(search("t.seldom", {}, at_first).finding.seldom);
  EXPECT_EQ(search("t.held", {}, [](Observation&) {}).finding, Finding{});
}

TEST(Search, KnowsTheKindOfAFaultByItsError) {
  const auto kind_of = [](const auto& raise) {
    return search("t.kind", {}, [&](Observation&) { raise(); }).finding.kind;
  };
  EXPECT_EQ(kind_of([] { throw Error(ErrorKind::check, ""); }), FindingKind::wrong_value);
  EXPECT_EQ(kind_of([] { throw Error(ErrorKind::oom, ""); }), FindingKind::unanswered);
  EXPECT_EQ(kind_of([] { RC_FAIL("no"); }), FindingKind::wrong_value);
  EXPECT_EQ(kind_of([] { throw FoundFault(ErrorKind::comm, FindingKind::hang, ""); }), FindingKind::hang);
  EXPECT_EQ(kind_of([] {}), FindingKind::none);
}

TEST(Search, KeepsWhatTheImplementationClaimsToLack) {
  const Lack hook{.kind = LackKind::attribute, .of = "torch.nn.Module", .name = "hook"};
  const auto raises = [&](Observation&) { throw FoundFault(ErrorKind::check, FindingKind::raised, "", {}, hook); };
  EXPECT_EQ(search("t.lacks", {}, raises).lacks, hook);
  const auto refuses = [&](Observation&) { throw Refusal("no", "f", FindingKind::raised, hook); };
  const LawResult refused = search("t.lacks", {}, refuses);
  EXPECT_EQ(refused.outcome, Outcome::not_run);
  EXPECT_EQ(refused.lacks, hook);
  EXPECT_FALSE(search("t.lacks", {}, [](Observation&) { throw Error(ErrorKind::check, ""); }).lacks);
  EXPECT_FALSE(search("t.lacks", {}, [](Observation&) {}).lacks);
}

// What is wrong on large inputs and lacks something on small ones is wrong.
TEST(Search, ShrinksNoFaultToALack) {
  const Lack hook{.kind = LackKind::attribute, .of = "torch.nn.Module", .name = "hook"};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const LawResult found = search("t.lacks", {.seed = seed}, [&](Observation& observation) {
      const int length = *rc::gen::inRange(0, 1000).as("length");
      if (length >= 500) throw Error(ErrorKind::check, "it is wrong");
      if (length >= 490) throw FoundFault(ErrorKind::check, FindingKind::raised, "", {}, hook);
      observation.record(0, 1);
    });
    EXPECT_EQ(found.lacks.has_value(), std::stoi(found.counterexample.at("length")) < 500);
  }
}

TEST(Search, OfASevereFaultLooksWhetherItStrikesOnWhatIsPromised) {
  const auto fault = [](FindingKind kind) {
    return [kind](Observation&) { throw FoundFault(ErrorKind::check, kind, "there"); };
  };
  for (const bool inside : {true, false}) {
    const LawRequest request{.contract = Contract::full};
    LawResult found = search("t.inside", request, fault(FindingKind::kept_state));
    EXPECT_FALSE(found.finding.promised);
    look_in_promised(request, found, [&](const LawRequest& asked) {
      EXPECT_EQ(asked.contract, Contract::handout);
      return inside ? search("t.inside", asked, fault(FindingKind::kept_state)) : LawResult{};
    });
    EXPECT_EQ(found.finding.promised, inside);
  }
  LawResult wrong = search("t.inside", {}, fault(FindingKind::wrong_value));
  look_in_promised({}, wrong, [](const LawRequest&) -> LawResult { throw std::logic_error("it is not severe"); });
  EXPECT_FALSE(wrong.finding.promised);
  EXPECT_TRUE(search("t.inside", {.contract = Contract::handout}, fault(FindingKind::hang)).finding.promised);
}

// Nothing but the search's own clock says how long: a busy machine looks as far.
TEST(Search, LooksAmongWhatIsPromisedAsLongAsTheLawMaySearch) {
  SlowTries slow{.tries = 90};  // the law itself has taken long
  const LawRequest request = slow.request(std::chrono::seconds(10));
  LawResult found{.outcome = Outcome::falsified, .finding = {.kind = FindingKind::crash}};
  std::int64_t tries = 0;
  look_in_promised(request, found, [&](const LawRequest& asked) {
    const LawResult inside = search("t.promised", asked, [&](Observation&) { ++slow.tries; });
    tries = inside.cases_run;
    return inside;
  });
  EXPECT_EQ(tries, 10);
  EXPECT_EQ(found.looking_in_promised, std::chrono::seconds(10));
  EXPECT_FALSE(found.finding.promised);
}

TEST(Search, TellsEqualNamesApart) {
  const LawResult result = search("t.names", {.seed = 1}, [](Observation&) {
    *rc::gen::inRange(1, 2).as("n");
    *rc::gen::inRange(2, 3).as("n");
    throw Error(ErrorKind::check, "always");
  });
  EXPECT_EQ(result.counterexample.at("n"), "1");
  EXPECT_EQ(result.counterexample.at("n #2"), "2");
}

}  // namespace
}  // namespace syslab::check
