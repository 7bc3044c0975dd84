#include "grade/pages.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace syslab::grade {
namespace {

constexpr const char* kRubric = R"(
handout = "2026"
[[problem]]
id = "mixed"
points = 15
[[problem.item]]
part = "a"
points = 6
function = "f"
experiment = "flash_forward"
[[problem.item]]
part = "b"
points = 9
function = "on_a_gpu"
experiment = "flash_forward"
[[problem]]
id = "whole"
points = 4
[[problem.item]]
points = 4
function = "f"
experiment = "flash_forward"
[[problem]]
id = "later"
points = 2
[[problem.item]]
points = 2
function = "on_a_gpu"
experiment = "flash_forward"
)";

Json row(const char* function, const char* not_checked) {
  const Json law{
      {"law", "attention.a"}, {"experiment", "flash_forward"}, {"contract", "handout"}, {"outcome", "passed"}};
  return {{"function", function}, {"state", "implemented"}, {"not_checked", not_checked}, {"laws", Json::array({law})}};
}

class TableOfGrades : public testing::Test {
 protected:
  // The row of ada: `heading` of each column, and what stands there; a number is a JSON number.
  Json row_for(Audience audience) const {
    const Json record{{"adapters", {row("f", ""), row("on_a_gpu", "needs a GPU")}}};
    const std::vector<Graded> all{{"ada", record, score(rubric_, record)}};
    const store::ResultSet table = table_of(rubric_, all, audience);
    Json found = Json::object();
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const store::Cell& cell = table.rows.at(0).at(i);
      found[table.columns[i]] = cell.type == store::Cell::Type::real ? Json(cell.real) : Json(cell.text);
    }
    return found;
  }

  Rubric rubric_ = parse_rubric(kRubric, "r");
};

TEST_F(TableOfGrades, TellsAPersonInACellWhatIsOpen) {
  EXPECT_EQ(row_for(Audience::person), (Json{{"student", "ada"},
                                             {"points", 10.0},
                                             {"checked", 10.0},
                                             {"open", 11.0},
                                             {"mixed", "6 (+9 open)"},
                                             {"whole", 4.0},
                                             {"later", "open"},
                                             {"note", ""}}));
}

TEST_F(TableOfGrades, GivesAProgramNumbersAlone) {
  EXPECT_EQ(row_for(Audience::program), (Json{{"student", "ada"},
                                              {"points", 10.0},
                                              {"checked", 10.0},
                                              {"open", 11.0},
                                              {"possible", 21.0},
                                              {"mixed", 6.0},
                                              {"mixed.open", 9.0},
                                              {"mixed.possible", 15.0},
                                              {"whole", 4.0},
                                              {"whole.open", 0.0},
                                              {"whole.possible", 4.0},
                                              {"later", 0.0},
                                              {"later.open", 2.0},
                                              {"later.possible", 2.0},
                                              {"note", ""}}));
}

TEST_F(TableOfGrades, HasAsManyCellsForWhoHandedNothingIn) {
  for (const Audience audience : {Audience::person, Audience::program}) {
    const store::ResultSet table = table_of(rubric_, {}, audience, {{"eve", "Eve"}});
    ASSERT_EQ(table.rows.at(0).size(), table.columns.size());
    EXPECT_EQ(table.rows.at(0).back().text, "nothing handed in");
    EXPECT_EQ(table.columns.at(4), "open");
    EXPECT_EQ(table.rows.at(0).at(4).real, 0);
    for (std::size_t i = 2; i + 1 < table.columns.size(); ++i) EXPECT_EQ(table.rows.at(0).at(i).text, "") << i;
  }
}

}  // namespace
}  // namespace syslab::grade
