#include "grade/outlook.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "submission/adapters.hpp"

namespace syslab::grade {
namespace {

constexpr const char* kRubric = R"(
handout = "2026"
[[problem]]
id = "p"
points = 13
[[problem.item]]
part = "a"
points = 3
function = "f"
experiment = "flash_forward"
[[problem.item]]
part = "b"
points = 7
function = "g"
experiment = "fsdp"
[[problem.item]]
part = "c"
points = 3
written = true
)";

Json row(const char* function, const char* state) {
  return {{"function", function}, {"state", state}, {"why", ""}, {"not_checked", ""}, {"laws", Json::array()}};
}

Json record(Json f, Json g) { return {{"asks", "torch ~=2.11"}, {"adapters", {std::move(f), std::move(g)}}}; }

class OutlookOfOne : public testing::Test {
 protected:
  Outlook look(const Json& record, const std::optional<Lack>& half = {}) const {
    return outlook_of(parse_rubric(kRubric, "r"), "ada", record, half);
  }
};

TEST_F(OutlookOfOne, WhatIsToBeCheckedIsNotOpen) {
  const Outlook one = look(record(row("f", "implemented"), row("g", "implemented")));
  EXPECT_DOUBLE_EQ(one.points, 10) << "a person gives the other three";
  EXPECT_DOUBLE_EQ(one.open, 0);
  EXPECT_EQ((std::pair{one.importable, one.functions}), (std::pair{2, 2}));
  EXPECT_EQ(one.asks, "torch ~=2.11");
  EXPECT_FALSE(one.is_mostly_open());
}

TEST_F(OutlookOfOne, WhatNeedsAGpuIsOpen) {
  Json g = row("g", "implemented");
  g["not_checked"] = "needs a GPU";
  const Outlook one = look(record(row("f", "implemented"), g));
  EXPECT_DOUBLE_EQ(one.open, 7);
  EXPECT_TRUE(one.is_mostly_open());
  EXPECT_EQ(one.why, std::vector<std::string>{"g needs a GPU"});
}

TEST_F(OutlookOfOne, WhatIsNotImportedForWantOfATorchIsOpenAndElseIsNot) {
  Json g = row("g", "fails");
  EXPECT_DOUBLE_EQ(look(record(row("f", "implemented"), g)).open, 0);
  g["open"] = true;
  g["lacks"] = to_json(Lack{LackKind::module, "", "torch.nn.attention", "1.13.0"});
  const Outlook one = look(record(row("f", "implemented"), g));
  EXPECT_DOUBLE_EQ(one.open, 7);
  EXPECT_EQ((std::pair{one.importable, one.functions}), (std::pair{1, 2}));
  EXPECT_EQ(one.why,
            std::vector<std::string>{"g needs what this Python lacks: torch 1.13.0 has no torch.nn.attention"});
}

TEST_F(OutlookOfOne, ATorchWithoutProductsInFp16LeavesFsdpOpen) {
  const Json both = record(row("f", "implemented"), row("g", "implemented"));
  Lack half{LackKind::dtype, "matmul", "fp16", "1.13.0"};
  EXPECT_DOUBLE_EQ(look(both, half).open, 7);
  half.torch = "2.11.0";
  EXPECT_DOUBLE_EQ(look(both, half).open, 0);
}

TEST(OutlookOfABatch, StopsWhereMoreThanHalfWouldBeMostlyOpen) {
  const Outlook graded{.points = 10, .open = 5}, open{.points = 10, .open = 6}, written{};
  EXPECT_FALSE(outlook_of(std::vector{graded, open}).stops());
  EXPECT_TRUE(outlook_of(std::vector{graded, open, open}).stops());
  EXPECT_FALSE(outlook_of(std::vector{written}).stops()) << "a person grades all of it";
  EXPECT_EQ(outlook_of(std::vector{graded, open, open}).text(), "at least 2 of 3 submissions would be mostly open");
  EXPECT_FALSE(outlook_of(std::vector<Outlook>{}).stops());
}

}  // namespace
}  // namespace syslab::grade
