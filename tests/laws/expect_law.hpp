// A law as a test runs it.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>

#include "check/search.hpp"
#include "tests/laws/search_test.hpp"

namespace syslab::property {

inline void expect_law(const char* id, int cases, const std::function<void(check::Observation&)>& property) {
  const check::LawResult result = check::search(id, ci_request(check::Contract::full, cases), property);
  EXPECT_EQ(result.outcome, check::Outcome::passed) << story({.id = id, .statement = "", .search = {}}, result);
}

// Of [first, end), all as likely from the first case on: laws of few and dear cases have no time to grow.
inline int drawn_size(const char* name, int first, int end) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(first, end)).as(name);
}

}  // namespace syslab::property
