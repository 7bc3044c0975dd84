#include "session/command_selection.hpp"

#include <gtest/gtest.h>

namespace syslab::cli {
namespace {

TEST(StoredQuantity, IsTheRateThatACommandPrints) {
  const Quantity rate = quantity_of_stored("command", R"({"n":4,"reads":"rate {} tokens/s"})");
  EXPECT_TRUE(rate.is_rate());
  EXPECT_EQ(rate.unit, "tokens/s");
}

TEST(StoredQuantity, IsOfSecondsOtherwise) {
  for (const char* params : {R"({"reads":"took {} ms"})", R"({"reads":"process time"})", R"({"n":4})"}) {
    EXPECT_FALSE(quantity_of_stored("command", params).is_rate()) << params;
  }
  EXPECT_FALSE(quantity_of_stored("function", R"({"reads":"{} GB/s"})").is_rate()) << "an axis that is called so";
}

TEST(StoredQuantity, TakesWhateverAnotherDatabaseHolds) {
  for (const char* params :
       {"", "no JSON", "[]", R"({"reads":7})", R"({"reads":"no number"})", R"({"reads":"{} apples"})"}) {
    EXPECT_EQ(quantity_of_stored("command", params).unit, "s") << params;
  }
  EXPECT_EQ(quantity_of_stored("command", R"({"reads":"{} a\u001b[2J\nb/s"})").unit.find_first_of("\x1b\n"),
            std::string::npos);
}

}  // namespace
}  // namespace syslab::cli
