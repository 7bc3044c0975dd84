// The layer of one rank on a GPU: its products, its gate and their check where they are.
#include <cmath>

#include "comm/nccl/communicator.hpp"
#include "tests/device/gpu_fixture.hpp"
#include "trials/split_layer.hpp"

namespace syslab::parallel {
namespace {

class GpuSplitLayer : public device::GpuTest {};

TEST_F(GpuSplitLayer, IsTheLayerInFp64WithinItsBound) {
  const auto alone = comm::make_alone({device::Kind::cuda, 0}, {});
  for (const LayerSplit split : {LayerSplit::fsdp, LayerSplit::tensor}) {
    for (const std::int64_t bytes : {4, 2}) {
      SplitLayer layer(*alone, {.tokens = 64, .d_model = 512, .d_ff = 1024, .element_bytes = bytes}, split, 7, stream);
      layer.refresh();
      layer.forward();
      const double first = layer.error();
      EXPECT_GT(first, 0);
      EXPECT_LE(first, 1);
      layer.refresh();
      EXPECT_GT(layer.error(), 3) << "these tokens were not computed";
    }
  }
}

}  // namespace
}  // namespace syslab::parallel
