#include "tests/laws/ladder_test.hpp"

#include "ops/rms_norm/eager.hpp"
#include "property_tests/rms_norm/laws.hpp"

namespace syslab::rms_norm {
namespace {

const property::LadderCases& all() {
  static const std::vector<Rung> rungs =
      property::with_eager(ladder(), find_rung("naive"), eager_workspace_bytes, eager_forward, eager_backward);
  static const property::LadderCases found = property::ladder_cases(rungs, laws);
  return found;
}

class RmsNormLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(RmsNormLaw, Holds) { property::expect_holds(GetParam(), 100); }

TEST(RmsNormLaws, OfARungWithoutABackwardPassAreThoseOfForward) {
  Rung rung = find_rung("naive");
  rung.backward = nullptr;
  rung.supports = [dtypes = rung.supports](const Problem& problem, Pass pass) {
    return pass == Pass::backward ? "forward only" : dtypes(problem, pass);
  };
  std::vector<std::string> not_run;
  for (const check::Law& law : laws(rung)) {
    const check::LawResult result = law.search(property::ci_request(check::Contract::full, 20));
    if (result.outcome == check::Outcome::not_run) {
      EXPECT_EQ(result.message, "naive has no backward pass");
      not_run.push_back(law.id);
    } else {
      EXPECT_EQ(to_string(result.outcome), "passed") << property::story(law, result);
    }
  }
  EXPECT_EQ(not_run, (std::vector<std::string>{"rms_norm.gradients_equal_oracle", "rms_norm.no_gradient_along_h"}));
}

TEST(RmsNormLaws, ApplyToEveryRung) { EXPECT_TRUE(all().left_out.empty()); }

INSTANTIATE_TEST_SUITE_P(Ladder, RmsNormLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace syslab::rms_norm
