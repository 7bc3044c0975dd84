// An operator case of somebody's own implementation, in another process: every call that is timed is compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/expect_contains.hpp"
#include "tests/worker/operator_case_fixture.hpp"

namespace syslab::worker {
namespace {

CaseRequest mine() {
  CaseRequest asked = request();
  asked.mine = Submitted{};
  return asked;
}

// Answers every n-th call with its last result.
Operation stale_every(int n) {
  Operation lazy = doubling();
  auto answer = std::make_shared<std::vector<float>>();
  auto calls = std::make_shared<int>(0);
  lazy.call = [=, right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    float* y = data(out[0]);
    if (++*calls % n == 0) {
      std::copy(answer->begin(), answer->end(), y);
      return;
    }
    right(in, out, stream);
    answer->assign(y, y + kElements);
  };
  lazy.self_time = [] { return Nanoseconds(std::chrono::milliseconds(1)); };
  return lazy;
}

Operation with_a_glimpse(Operation made) {
  made.glimpse = [](const Inputs& in, const Outputs&, std::uint64_t random) {
    const auto row = static_cast<std::int64_t>(random % kRows);
    Glimpse seen{0, row * kColumns, {}};
    for (std::int64_t i = 0; i < kColumns; ++i) seen.values.push_back(2.0 * in[0].as<float>()[seen.first + i]);
    return std::vector{seen};
  };
  return made;
}

TEST(OperatorCase, AnAnswerGivenAgainIsFoundHoweverSlowTheOracle) {
  for (const int n : {2, 3, 7}) {
    Operation lazy = with_a_glimpse(stale_every(n));
    lazy.expect = [exact = doubling().expect](const Inputs& in) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // compares one or two calls whole
      return exact(in);
    };
    const Outcome outcome = run(lazy, mine());
    EXPECT_NE(outcome.failure.find("a timed sample is wrong"), std::string::npos) << n << outcome.failure;
    EXPECT_EQ(outcome.check("sample:y").outcome, syslab::Outcome::falsified);
  }
}

TEST(OperatorCase, WhereThereIsNothingCheaperTheOracleLooksAtEveryCallOfSomebodysOwn) {
  for (const int n : {2, 7}) EXPECT_NE(run(stale_every(n), mine()).failure, "") << n;
  Operation right = doubling();
  right.self_time = [] { return Nanoseconds(std::chrono::milliseconds(1)); };
  const Json facts = run(right, mine()).facts();
  EXPECT_EQ(facts.at("verified"), facts.at("timed_calls"));
}

// An oracle of less work, whose bounds are at most as wide: right by it is right, wrong is only what the whole one
// says.
TEST(OperatorCase, ANarrowerOracleSparesTheWholeOneAndAccusesNobody) {
  const auto narrow_of = [](double share, int& asked) {
    return [share, &asked](const Inputs& in) {
      ++asked;
      std::vector<Expected> expected = doubling().expect(in);
      for (double& tolerance : expected[0].tolerance) tolerance *= share;
      return expected;
    };
  };
  const auto with = [&](Operation made, double share, int& narrow, int& whole) {
    made.self_time = [] { return Nanoseconds(std::chrono::milliseconds(1)); };
    made.expect_narrowly = narrow_of(share, narrow);
    made.expect = [&whole, exact = made.expect](const Inputs& in) {
      ++whole;
      return exact(in);
    };
    return made;
  };
  int narrow = 0, whole = 0;
  const Outcome right = run(with(doubling(), 1, narrow, whole), mine());
  EXPECT_EQ(right.failure, "");
  EXPECT_EQ(whole, 1) << "the first call alone";
  EXPECT_EQ(right.facts().at("verified"), narrow);

  Operation off = doubling();
  off.call = [](const Inputs& in, const Outputs& out, device::Stream) {
    for (std::int64_t i = 0; i < kElements; ++i) data(out[0])[i] = std::nextafter(2 * in[0].as<float>()[i], 100.0F);
  };
  narrow = whole = 0;
  EXPECT_EQ(run(with(off, 0, narrow, whole), mine()).failure, "") << "beyond the narrow bound and within the whole one";
  EXPECT_EQ(whole, narrow + 1);

  for (const int n : {2, 7}) EXPECT_NE(run(with(stale_every(n), 1, narrow, whole), mine()).failure, "") << n;
  Operation changes = doubling();
  auto calls = std::make_shared<int>(0);
  changes.call = [calls, right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    right(in, out, stream);
    float& first = const_cast<float*>(in[0].as<float>())[0];
    if (++*calls > 8) first = std::nextafter(first, 100.0F);  // by less than a bound's width: the result stays right
  };
  expect_contains(run(with(changes, 1, narrow, whole), mine()).failure, "changed its input");
  EXPECT_GT(*calls, 8);
}

// Doubles all elements but the first `wrong` of `of`, which are 1 too large: beyond their own tolerance, and within the
// other.
Operation leaning_on_neighbours(std::int64_t wrong) {
  Operation made = doubling();
  made.call = [wrong, right = doubling().call](const Inputs& in, const Outputs& out, device::Stream stream) {
    right(in, out, stream);
    for (std::int64_t i = 0; i < wrong; ++i) data(out[0])[i] += 1;
  };
  made.expect = [](const Inputs& in) {
    std::vector<Expected> expected = doubling().expect(in);
    expected[0].tolerance.assign(kElements, 2);
    expected[0].own_tolerance.assign(kElements, 1e-6);
    return expected;
  };
  return made;
}

TEST(OperatorCase, ElementsThatOnlyTheirNeighboursLetPassAreNotChecked) {
  EXPECT_EQ(run(leaning_on_neighbours(0), mine()).check("reference:y").fraction_checked, 1);
  const Outcome some = run(leaning_on_neighbours(kElements / 8), mine());
  EXPECT_EQ(some.failure, "");
  for (const char* name : {"reference:y", "samples:y"}) {
    EXPECT_EQ(some.check(name).outcome, syslab::Outcome::passed) << name;
    EXPECT_EQ(some.check(name).fraction_checked, 7.0 / 8) << name;
  }
}

TEST(OperatorCase, WhereTheyAreAQuarterNothingIsTimed) {
  try {
    run(leaning_on_neighbours(kElements / 4), mine());
    FAIL() << "a quarter of the elements is not judged";
  } catch (const Unsupported& reason) {
    expect_contains(reason.what(), "not judged: 25 % of the elements of 'y'");
    expect_contains(reason.what(), "as large as 2;");
  }
  Operation wrong = leaning_on_neighbours(kElements / 2);
  wrong.expect = [inner = wrong.expect](const Inputs& in) {
    std::vector<Expected> expected = inner(in);
    expected[0].tolerance[0] = 1e-6;
    return expected;
  };
  expect_contains(run(wrong, mine()).failure, "1 of 256 wrong");  // and no doubt of the others saves it
}

TEST(OperatorCase, ANarrowOracleThatLeansOnNeighboursDoesNotSpareTheWholeOne) {
  Operation made = leaning_on_neighbours(kElements / 8);
  made.self_time = [] { return Nanoseconds(std::chrono::milliseconds(1)); };
  int whole = 0;
  made.expect_narrowly = made.expect;
  made.expect = [&whole, inner = made.expect](const Inputs& in) {
    ++whole;
    return inner(in);
  };
  EXPECT_EQ(run(made, mine()).failure, "");
  EXPECT_GT(whole, 1);
}

// The glimpse may err, the oracle decides.
TEST(OperatorCase, AGlimpseAccusesNobody) {
  Operation right = doubling();
  right.self_time = [] { return Nanoseconds(std::chrono::milliseconds(1)); };
  right.glimpse = [](const Inputs&, const Outputs&, std::uint64_t) { return std::vector{Glimpse{0, 3, {1e6}}}; };
  EXPECT_EQ(run(right, mine()).failure, "");
}

// A large output is compared in part; then the oracle is asked about the part in doubt, and where it knows nothing of
// it the lab's own kernel decides.
TEST(OperatorCase, WhatTheOracleLeavesOutIsComparedWhereItLooksWrong) {
  const auto only_first = [](std::vector<Expected> expected) {
    std::fill(expected[0].value.begin() + 1, expected[0].value.end(), NAN);
    return expected;
  };
  for (const bool around : {false, true}) {
    Operation partial = with_a_glimpse(doubling());
    partial.self_time = [] { return Nanoseconds(std::chrono::milliseconds(1)); };
    partial.call = [](const Inputs& in, const Outputs& out, device::Stream) {
      const float* x = in[0].as<float>();
      for (std::int64_t i = 0; i < kElements; ++i) data(out[0])[i] = i == 0 ? 2 * x[i] : 3;
    };
    partial.expect = [=, exact = doubling().expect](const Inputs& in) { return only_first(exact(in)); };
    if (around) {
      partial.expect_around = [exact = doubling().expect](const Inputs& in, std::size_t output, std::int64_t element) {
        EXPECT_EQ(output, 0U);
        EXPECT_GE(element, 0);
        return exact(in);
      };
    }
    const Outcome outcome = run(partial, mine());
    EXPECT_NE(outcome.failure.find(around ? "expected" : "beyond doubt"), std::string::npos) << outcome.failure;
  }
}

}  // namespace
}  // namespace syslab::worker
