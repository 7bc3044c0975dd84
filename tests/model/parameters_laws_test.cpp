// Laws of the parameters' layout, over models of any size.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "model/parameters.hpp"
#include "tests/laws/expect_law.hpp"

namespace syslab::model {
namespace {

ModelConfig draw_model() {
  const auto size = [](const char* name, int last) {
    return static_cast<std::int64_t>(*rc::gen::inRange(1, last + 1).as(name));
  };
  ModelConfig config;
  config.vocab = size("vocab", 300);
  config.context = size("context", 64);
  config.heads = size("heads", 6);
  config.d_model = config.heads * 2 * size("half of the head dimension", 40);
  config.d_ff = size("d_ff", 300);
  config.layers = size("layers", 8);
  return config;
}

TEST(ParameterLaws, EveryParameterHasItsElementsAloneAndInOrder) {
  property::expect_law("model.layout_covers_once", 200, [](check::Observation&) {
    const ModelConfig config = draw_model();
    const ParameterLayout layout(config);
    RC_ASSERT(layout.size() == 9 * config.layers + 3);
    RC_ASSERT(layout.parameters() == parameter_count(config));

    // Going through the arena, each tensor begins where the one before it was padded to, and all are met once.
    std::int64_t end = 0, elements = 0;
    std::set<int> met;
    for (const int index : layout.arena_order()) {
      RC_ASSERT(layout.offset(index) == end);
      const std::int64_t tensor_end = end + layout.info(index).shape.elements();
      elements += layout.info(index).shape.elements();
      end = layout.padded_end(index);
      RC_ASSERT(end >= tensor_end);
      RC_ASSERT(end - tensor_end < kAlignedElements);
      met.insert(index);
    }
    RC_ASSERT(static_cast<int>(met.size()) == layout.size());
    RC_ASSERT(end == layout.elements());
    RC_ASSERT(elements == layout.parameters());
    RC_ASSERT(layout.elements() % kAlignedElements == 0);
  });
}

TEST(ParameterLaws, OnlyTheFollowersInABracketMayBeginUnaligned) {
  property::expect_law("model.layout_aligned", 200, [](check::Observation&) {
    const ModelConfig config = draw_model();
    const ParameterLayout layout(config);
    std::set<int> followers;
    for (std::int64_t number = 0; number < config.layers; ++number) {
      const LayerIndices at = layout.layer(number);
      followers.insert({at.k, at.v, at.w3});
      RC_ASSERT(layout.offset(at.v) - layout.offset(at.q) == 2 * config.d_model * config.d_model);
      RC_ASSERT(layout.offset(at.k) - layout.offset(at.q) == config.d_model * config.d_model);
      RC_ASSERT(layout.offset(at.w3) - layout.offset(at.w1) == config.d_ff * config.d_model);
    }
    for (int index = 0; index < layout.size(); ++index) {
      RC_ASSERT(followers.contains(index) || layout.offset(index) % kAlignedElements == 0);
    }
  });
}

TEST(ParameterLaws, ANameFindsItsIndex) {
  property::expect_law("model.layout_names", 50, [](check::Observation&) {
    const ParameterLayout layout(draw_model());
    for (int index = 0; index < layout.size(); ++index) RC_ASSERT(layout.index_of(layout.info(index).name) == index);
  });
}

}  // namespace
}  // namespace syslab::model
