#include "claim/statement.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace syslab::claim {
namespace {

TEST(Statement, ReadsWhatPeopleWrite) {
  const Statement plain = parse_statement("me >= 1.10 x sdpa");
  EXPECT_EQ(plain.faster, "me");
  EXPECT_EQ(plain.slower, "sdpa");
  EXPECT_EQ(plain.factor, 1.1);
  EXPECT_EQ(plain.quantifier, Quantifier::every_case);
  EXPECT_EQ(to_string(plain), "me >= 1.1 x sdpa in every case");
  for (const char* same : {"me>=1.1 × sdpa", " me >= 1.1 * sdpa in every case ", "me >=1.1 x  sdpa"}) {
    EXPECT_EQ(to_string(parse_statement(same)), to_string(plain)) << same;
  }
  EXPECT_EQ(to_string(parse_statement("me >= sdpa in geometric mean")), "me >= 1 x sdpa in geometric mean");
  EXPECT_EQ(parse_statement("strategy=bucketed,bucket_mb=25 >= 1.2 x strategy=naive").faster,
            "strategy=bucketed,bucket_mb=25");
}

TEST(Statement, WhatItWritesItReads) {
  for (const char* text : {"a >= 0.25 x b in every case", "a >= 1234.5 x b in geometric mean"}) {
    EXPECT_EQ(to_string(parse_statement(text)), text);
  }
}

TEST(Statement, RefusesTheRestWithTheForm) {
  for (const char* wrong : {"", "me", "me > 1.1 x b", ">= 1 x b", "me >=", "me >= x b", "me >= 1.1 b", "me >= 1,1 x b",
                            "me >= nan x b", "me >= -1 x b", "me >= 0 x b", "me >= 1e300 x b", "me >= 1 x me",
                            "a b >= 1 x c", "me >= 1 x b c", "me >= 1 x b on average"}) {
    try {
      parse_statement(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find("FASTER >= FACTOR x SLOWER"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace syslab::claim
