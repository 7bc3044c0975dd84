// Kernels that are right in another way than ours (tests/fixtures/plugins/right_attention.c) under the laws that
// `syslab check --mine` searches: none may be accused. A longer search: SYSLAB_LAW_TIMES=50.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "capi/plugin.hpp"
#include "ops/attention/domain.hpp"
#include "property_tests/attention/laws.hpp"
#include "tests/laws/search_test.hpp"

namespace syslab::capi {
namespace {

constexpr int kCases = 6;

// "half_weights" of right_half_weights.so, sorted.
std::vector<std::string> variants() {
  const char* folder = std::getenv("SYSLAB_PLUGINS");
  std::vector<std::string> names;
  if (folder == nullptr) return names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("right_") && name.ends_with(".so")) names.push_back(name.substr(6, name.size() - 9));
  }
  std::sort(names.begin(), names.end());
  return names;
}

class RightVariant : public testing::TestWithParam<std::string> {};

TEST_P(RightVariant, IsAccusedByNeitherContract) {
  const std::filesystem::path folder = std::getenv("SYSLAB_PLUGINS");
  const attention::Rung rung = load_attention_plugin("me", folder / ("right_" + GetParam() + ".so"));
  attention::Domain domain;
  domain.usual = true;  // nothing declared, as most libraries
  int held = 0;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const check::Law& law : attention::laws_of(rung, pass, domain)) {
      for (const check::Contract contract : {check::Contract::handout, check::Contract::full}) {
        const check::LawResult result = law.search(property::ci_request(contract, kCases));
        if (result.outcome == check::Outcome::not_run) continue;
        EXPECT_EQ(to_string(result.outcome), "passed") << property::story(law, result);
        held += result.outcome == check::Outcome::passed ? 1 : 0;
      }
    }
  }
  EXPECT_GE(held, 20);
}

INSTANTIATE_TEST_SUITE_P(All, RightVariant, testing::ValuesIn(variants()), [](const auto& info) { return info.param; });

TEST(RightVariants, AreTwentyAtLeast) { EXPECT_GE(variants().size(), 20U); }

}  // namespace
}  // namespace syslab::capi
