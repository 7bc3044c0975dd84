#include "submission/locked.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syslab::submission {
namespace {

TEST(Locked, AVersionIsOlderByItsFirstNumbers) {
  EXPECT_TRUE(is_older("1.13.0a0+gitunknown", "2.6"));
  EXPECT_TRUE(is_older("2.9.1", "2.11"));
  EXPECT_FALSE(is_older("2.11.0+cu130", "2.11"));
  EXPECT_FALSE(is_older("2.12", "2.11"));
  EXPECT_FALSE(is_older("3", "2.11"));
  EXPECT_FALSE(is_older("none", "2.11"));
  EXPECT_FALSE(is_older("", "2.11"));
}

Lack established(LackKind kind, const char* name, const char* torch, bool declared = false) {
  return {.kind = kind, .of = "torch", .name = name, .torch = torch, .declared = declared};
}

TEST(Locked, WhatOnlyAnOlderTorchLacksIsOfTheSurroundings) {
  for (const LackKind kind : {LackKind::attribute, LackKind::argument, LackKind::dtype}) {
    EXPECT_TRUE(is_of_surroundings(established(kind, "x", "1.13.0"), "2026"));
    EXPECT_TRUE(is_of_surroundings(established(kind, "x", "2.7.0"), "2026"));
    EXPECT_FALSE(is_of_surroundings(established(kind, "x", "2.7.0"), "2025"));
    EXPECT_FALSE(is_of_surroundings(established(kind, "x", "2.11.0"), "2026"));
    EXPECT_FALSE(is_of_surroundings(established(kind, "x", ""), "2026")) << "it is a claim";
  }
  EXPECT_TRUE(is_of_surroundings(established(LackKind::module, "torch.nn.attention", "1.13.0"), "2026"));
  EXPECT_FALSE(is_of_surroundings(established(LackKind::module, "torch.nn.attention", "2.12.0"), "2026"));
}

TEST(Locked, APackageIsWhereTheHandOutHasItOrTheSubmissionRequiresIt) {
  EXPECT_TRUE(is_of_surroundings(established(LackKind::module, "einops", "2.11.0"), "2026"));
  EXPECT_FALSE(is_of_surroundings(established(LackKind::module, "of_nobody", "2.11.0"), "2026"));
  EXPECT_TRUE(is_of_surroundings(established(LackKind::module, "of_nobody", "2.11.0", true), "2026"));
  EXPECT_TRUE(is_of_surroundings(established(LackKind::package, "einx", "2.11.0"), "2026"));
  EXPECT_FALSE(is_of_surroundings(established(LackKind::package, "of_nobody", "1.13.0"), "2026"));
  EXPECT_TRUE(is_of_surroundings(established(LackKind::package, "of_nobody", "2.11.0", true), "2026"));
  EXPECT_TRUE(is_of_surroundings(established(LackKind::python, "syntax", "none", true), "2026"));
}

TEST(Lack, SurvivesTheWayThroughJson) {
  const Lack lack = established(LackKind::argument, "x", "1.13.0", true);
  EXPECT_EQ(lack_of(to_json(lack)), lack);
  for (const LackKind kind : kLackKinds) EXPECT_EQ(lack_kind_of(to_string(kind)), kind);
}

}  // namespace
}  // namespace syslab::submission
