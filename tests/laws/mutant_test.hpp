// The laws on trial: what a planted fault must do to the law that is meant for it.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/laws/search_test.hpp"

namespace syslab::property {

inline const check::Law& law_named(const std::string& id, const std::vector<check::Law>& laws) {
  for (const check::Law& law : laws) {
    if (law.id == id) return law;
  }
  throw Error(ErrorKind::usage, "no law is called " + id);
}

// The faulty rung is found within CI's budget, its reproduce string finds it again, and the sound twin holds on the
// very same input: the counterexample is the fault's, not the law's.
inline void expect_caught(const std::string& id, const std::vector<check::Law>& faulty,
                          const std::vector<check::Law>& sound, bool repeats = true) {
  const check::Law& law = law_named(id, faulty);
  check::LawRequest request = ci_request(check::Contract::full, 40);
  const check::LawResult result = law.search(request);
  ASSERT_EQ(result.outcome, check::Outcome::falsified) << story(law, result);
  EXPECT_FALSE(result.counterexample.empty());

  request.reproduce = result.reproduce;
  if (!repeats) request.replay_tries = 100;
  const check::LawResult again = law.search(request);
  EXPECT_EQ(again.outcome, check::Outcome::falsified) << story(law, again);
  EXPECT_EQ(again.counterexample, result.counterexample);
  if (repeats) {
    EXPECT_EQ(again.message, result.message);
  }
  const check::LawResult mended = law_named(id, sound).search(request);
  EXPECT_EQ(mended.outcome, check::Outcome::passed) << story(law, mended);
}

}  // namespace syslab::property
