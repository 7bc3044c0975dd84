// Somebody's library under the laws, as `syslab check flash_forward --mine me=….so` puts it there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "capi/plugin.hpp"
#include "property_tests/attention/laws.hpp"
#include "tests/laws/search_test.hpp"

namespace syslab::capi {
namespace {

attention::Rung library(const char* variable, const std::string& file) {
  const char* value = std::getenv(variable);
  const std::filesystem::path path = value == nullptr ? "unset" : value;
  return load_attention_plugin("me", file.empty() ? path : path / file);
}

void expect_no_law_broken(const attention::Rung& rung, int cases, const std::vector<std::string>& not_run) {
  for (const check::Law& law : attention::laws(rung)) {
    for (const check::Contract contract : {check::Contract::handout, check::Contract::full}) {
      const check::LawResult result = law.search(property::ci_request(contract, cases));
      if (result.outcome == check::Outcome::not_run && contract == check::Contract::handout) continue;
      const bool excused = std::find(not_run.begin(), not_run.end(), law.id) != not_run.end();
      EXPECT_EQ(result.outcome, excused ? check::Outcome::not_run : check::Outcome::passed)
          << property::story(law, result);
    }
  }
}

TEST(PluginLaws, LibsyslabAsSomebodysLibraryBreaksNone) { expect_no_law_broken(library("SYSLAB_LIBRARY", ""), 15, {}); }

TEST(PluginLaws, ACorrectLibraryInPlainCBreaksNone) {
  // It refuses half precision, and so there is nothing to hold against the naive kernel there.
  expect_no_law_broken(library("SYSLAB_PLUGINS", "naive_attention.so"), 25,
                       {"attention.half_no_worse_than_naive", "attention.half_gradients_no_worse_than_naive"});
}

TEST(PluginLaws, AMaskOffByOneIsFoundAndNamed) {
  const attention::Rung faulty = library("SYSLAB_PLUGINS", "faulty_attention.so");
  std::vector<std::string> broken;
  for (const check::Law& law : attention::laws(faulty)) {
    const check::LawResult result = law.search(property::ci_request(check::Contract::full, 50));
    if (result.outcome != check::Outcome::falsified) continue;
    broken.push_back(law.id);
    EXPECT_FALSE(result.reproduce.empty()) << law.id;
    EXPECT_FALSE(result.counterexample.empty()) << law.id;
  }
  EXPECT_NE(std::find(broken.begin(), broken.end(), "attention.causal_prefix"), broken.end());
}

}  // namespace
}  // namespace syslab::capi
