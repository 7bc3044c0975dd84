#include "verdict/law_row.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace syslab::verdict {
namespace {

LawRow whole() {
  return {.law = "attention.causal_prefix",
          .experiment = "flash_forward",
          .contract = Contract::full,
          .outcome = Outcome::error,
          .finding = {.kind = FindingKind::killed,
                      .promised = true,
                      .seldom = true,
                      .about = "q",
                      .cause = "no mask",
                      .first_wrong = "out[3]: found 7"},
          .applies = false,
          .open = true,
          .out_of_time = true,
          .lacks = Lack{LackKind::attribute, "torch.nn.Module", "hook", "1.13.0"},
          .message = "out[3]: found 7",
          .input = "B=1",
          .check = "01a227e1",
          .tries = 12};
}

TEST(LawRow, IsReadAsItWasWritten) {
  const Json written = to_json(whole());
  EXPECT_EQ(written, to_json(law_row_of(written)));
  EXPECT_EQ(written.at("contract"), "full");
  EXPECT_EQ(written.at("outcome"), "error");
  EXPECT_EQ(written.at("finding"), "killed");
  for (const auto& [field, value] : written.items()) {  // each field is one that is read
    EXPECT_NE(to_json(LawRow{}).at(field), value) << field;
  }
}

TEST(LawRow, WhatIsNotThereKeepsItsDefault) { EXPECT_EQ(to_json(law_row_of(Json::object())), to_json(LawRow{})); }

TEST(LawRow, AWordOfAnotherVersionIsRefusedByName) {
  for (const char* field : {"contract", "outcome", "finding"}) {
    Json one = to_json(whole());
    one[field] = "some";
    try {
      law_row_of(one);
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::store);
      EXPECT_NE(std::string(error.what()).find(std::string(field) + " 'some'"), std::string::npos) << error.what();
    }
  }
}

TEST(LawRow, AFieldOfAnotherTypeIsAnErrorOfTheStore) {
  for (const Json& damaged :
       {Json("text"), Json{{"law", 3}}, Json{{"outcome", Json::array()}}, Json{{"open", "yes"}}}) {
    try {
      law_row_of(damaged);
      ADD_FAILURE() << damaged;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::store) << damaged;
    }
  }
}

TEST(LawRow, AListIsReadInItsOrder) {
  EXPECT_TRUE(law_rows_of(Json::object()).empty());
  EXPECT_TRUE(law_rows_of({{"laws", "none"}}).empty());
  LawRow second;
  second.law = "second";
  const auto rows = law_rows_of({{"laws", {to_json(whole()), to_json(second)}}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].law, whole().law);
  EXPECT_EQ(rows[1].law, "second");
}

}  // namespace
}  // namespace syslab::verdict
