// What a command line asks for, and how it is refused.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "plan/plan.hpp"

namespace syslab::plan {

inline std::int64_t i64(std::int64_t value) { return value; }  // of an axis: a bare 1 could be a bool or a double

inline Selection select(std::vector<std::string> patterns, const std::vector<std::string>& assignments = {}) {
  Selection selection;
  selection.patterns = std::move(patterns);
  for (const std::string& text : assignments) selection.assignments.push_back(parse_assignment(text));
  return selection;
}

// The message of the Error(usage) that `call` throws.
template <typename Call>
std::string usage_error(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace syslab::plan
