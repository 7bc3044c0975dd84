// Claims over programs say nothing of inputs that nobody drew.
#include "claim/programs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "claim/alteration.hpp"
#include "claim/page.hpp"
#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "tests/claim/some_claim.hpp"

namespace syslab::claim {
namespace {

File of_programs() {
  File file = test::some_claim();
  file.statement = parse_statement("new >= 1.5 x old");
  file.question.experiments = {"command"};
  file.question.assignments = {};
  file.question.reads = "took {} ms";
  file.faster = {"new", true, "00ff", "new", "./bench new", {}};
  file.slower = {"old", true, "ff00", "old", "./bench old", {}};
  Case& one = file.cases.front();
  one.title = one.experiment = "command";
  one.params = R"({"reads":"took {} ms"})";
  one.faster_code.clear();
  return file;
}

File sealed(const File& file, const std::function<void(Json&)>& edit) {
  Json claim = parse_json(to_text(file));
  edit(claim);
  claim["seal"] = seal_of(claim);
  return from_text("x.claim", json_text(claim));
}

TEST(Programs, HaveOneSeedAndOneKindOfData) {
  EXPECT_TRUE(sealed(of_programs(), [](Json&) {}).altered.empty());
  const auto where = [](const char* path, const Json& value) {
    const File file = sealed(of_programs(), [&](Json& claim) { claim[Json::json_pointer(path)] = value; });
    return file.altered.size() == 1 ? file.altered[0].where : std::to_string(file.altered.size());
  };
  EXPECT_EQ(where("/question/data", "zeros"), "question/data");
  EXPECT_EQ(where("/question/data", "zeros, of 4096 x 4096 elements, as MLPerf wants them"), "question/data");
  EXPECT_EQ(where("/question/seed", 424242), "question/seed");
  EXPECT_EQ(where("/question/experiments", {"command", "--help"}), "question/experiments");
  Question question;
  question.data = "zeros";
  question.seed = 7;
  take_inputs_of_programs(question);
  EXPECT_EQ(question.data, "normal");
  EXPECT_EQ(question.seed, 0U);
}

TEST(Programs, AKernelMayHaveAnySeedAndData) {
  const File file = sealed(test::some_claim(), [](Json& claim) {
    claim["question"]["seed"] = 424242;
    claim["question"]["data"] = "zeros";
  });
  EXPECT_FALSE(is_of_programs(file));
  EXPECT_TRUE(file.altered.empty());
}

TEST(Programs, HaveNoInputsOnTheirPage) {
  EXPECT_EQ(write_page(of_programs(), "x.claim", report::Format::markdown).find("Inputs"), std::string::npos);
  const std::string page = write_page(test::some_claim(), "x.claim", report::Format::markdown);
  EXPECT_NE(page.find("**Inputs**: “normal”, drawn from seed 0"), std::string::npos) << page;
}

TEST(Programs, AProtocolThatNobodyKnowsIsRefused) {
  try {
    sealed(of_programs(), [](Json& claim) { claim["question"]["protocol"] = "kernel --mine me=x.so"; });
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("its protocol is “kernel --mine me=x.so”; expected one of kernel, "),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace syslab::claim
