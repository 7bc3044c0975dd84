// One gated layer divided over ranks, computed and communicated for real.
#include "trials/split_layer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "tests/parallel/ranks_fixture.hpp"

namespace syslab::parallel {
namespace {

using device::Stream;
using test::with_ranks;

GatedLayer layer_of(std::int64_t element_bytes) {
  return {.tokens = 8, .d_model = 24, .d_ff = 40, .element_bytes = element_bytes};
}

const GatedLayer kLayer = layer_of(4);

TEST(SplitLayer, EveryRankEndsWithTheWholeLayersNumbers) {
  for (const LayerSplit split : {LayerSplit::fsdp, LayerSplit::tensor}) {
    for (const std::int64_t bytes : {4, 2}) {
      for (const int ranks : {1, 2, 4}) {
        with_ranks(ranks, [&](comm::Communicator& all, Stream stream, Stream) {
          SplitLayer layer(all, layer_of(bytes), split, 7, stream);
          for (int step = 0; step < 2; ++step) {
            layer.refresh();
            layer.forward();
            EXPECT_GT(layer.error(), 0) << "rounding is not exact";
            EXPECT_LE(layer.error(), 1);
          }
        });
      }
    }
  }
}

TEST(SplitLayer, WithoutCommunicatingItIsWrong) {
  for (const std::int64_t bytes : {4, 2}) {
    with_ranks(2, [&](comm::Communicator& all, Stream stream, Stream) {
      SplitLayer gathered(all, layer_of(bytes), LayerSplit::fsdp, 7, stream);
      SplitLayer summed(all, layer_of(bytes), LayerSplit::tensor, 7, stream);
      gathered.refresh();
      gathered.compute();
      EXPECT_TRUE(std::isnan(gathered.error())) << "the other rank's weights are not here";
      summed.refresh();
      summed.compute();
      EXPECT_GT(summed.error(), bytes == 4 ? 1e3 : 3) << "half of the sum";
    });
  }
}

TEST(SplitLayer, SendsWhatTheFormulaSays) {
  for (const LayerSplit split : {LayerSplit::fsdp, LayerSplit::tensor}) {
    for (const std::int64_t bytes : {4, 2}) {
      with_ranks(4, [&](comm::Communicator& all, Stream stream, Stream) {
        SplitLayer layer(all, layer_of(bytes), split, 7, stream);
        layer.refresh();
        layer.forward();
        EXPECT_LE(layer.error(), 1);
        const PassCosts costs = layer.costs();
        EXPECT_EQ(all.counters().total().wire_bytes, costs.data_sent_bytes + costs.tensor_sent_bytes);
        EXPECT_EQ(costs.flops, 6.0 * 8 * 24 * 40 / 4);
      });
    }
  }
}

TEST(SplitLayer, RefusesWhatDoesNotDivide) {
  EXPECT_THROW(parse_layer_split("both"), Error);
  with_ranks(3, [&](comm::Communicator& all, Stream stream, Stream) {
    EXPECT_THROW(SplitLayer(all, kLayer, LayerSplit::fsdp, 7, stream), Error);
    EXPECT_THROW(SplitLayer(all, kLayer, LayerSplit::tensor, 7, stream), Error);
    EXPECT_THROW(SplitLayer(all, layer_of(8), LayerSplit::fsdp, 7, stream), Error) << "no fp64";
  });
  const auto refused = [](const GatedLayer& layer, std::int64_t ranks) {
    try {
      require_even(layer, ranks);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refused(kLayer, 4), "none");
  EXPECT_EQ(refused(kLayer, 3), "8 tokens are not divided evenly among 3 ranks");
  EXPECT_EQ(refused(kLayer, 16), "8 tokens are not divided evenly among 16 ranks");
  EXPECT_EQ(refused({.tokens = 9, .d_model = 24, .d_ff = 40, .element_bytes = 4}, 3),
            "40 hidden numbers are not divided evenly among 3 ranks");
}

}  // namespace
}  // namespace syslab::parallel
