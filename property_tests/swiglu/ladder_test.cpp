#include "property_tests/ladder_test.hpp"

#include "property_tests/swiglu/laws.hpp"

namespace syslab::swiglu {
namespace {

const property::LadderCases& all() {
  static const property::LadderCases found = property::ladder_cases(ladder(), laws);
  return found;
}

class SwigluLaw : public testing::TestWithParam<property::LadderCase> {};

TEST_P(SwigluLaw, Holds) { property::expect_holds(GetParam(), 100); }

INSTANTIATE_TEST_SUITE_P(Ladder, SwigluLaw, testing::ValuesIn(all().cases),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace syslab::swiglu
