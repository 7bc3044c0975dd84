#include "tests/ops/gpu_model_tensors.hpp"
#include "tests/ops/rope_fixture.hpp"

namespace syslab::rope {
namespace {

using ops::There;

class GpuRope : public device::GpuTest {
 protected:
  void run(Instance& i, std::int64_t shift = 0, bool in_place = false) {
    const Rung& rung = find_rung("fused_cuda");
    const There x(i.x, stream, shift), y(i.y, stream, shift), dy(i.dy, stream, shift), dx(i.dx, stream, shift),
        cos(i.cos, stream), sin(i.sin, stream);
    const Args forward{x.view, cos.view, sin.view, in_place ? x.view : y.view},
        backward{dy.view, cos.view, sin.view, in_place ? dy.view : dx.view};
    validate(i.problem, forward, Pass::forward);
    validate(i.problem, backward, Pass::backward);
    ASSERT_EQ(rung.supports(i.problem, Pass::forward), std::nullopt);
    rung.forward(i.problem, forward, {}, stream);
    rung.backward(i.problem, backward, {}, stream);
    (in_place ? x : y).bring_back(i.y);
    (in_place ? dy : dx).bring_back(i.dx);
  }
};

const std::vector<DType> kDtypes = {DType::f32, DType::f16, DType::bf16};
const std::vector<Layout> kLayouts = {Layout::interleaved, Layout::halves};

TEST_F(GpuRope, StaysWithinItsBoundsAtEveryEdgeInBothLayouts) {
  for (const DType dtype : kDtypes) {
    for (const Layout layout : kLayouts) {
      for (const std::int64_t head_dim : {2, 4, 6, 8, 16, 24, 40, 62, 64, 80, 96, 128, 256, 1024}) {
        for (const std::int64_t heads : {1, 5, 24}) {
          const Problem p{2, heads, head_dim > 200 ? 3 : 19, head_dim, layout, dtype, dtype};
          Instance i(p, static_cast<unsigned>(head_dim + heads));
          run(i);
          ASSERT_LE(worst_ratio(i), 1.0) << to_string(p);
        }
      }
    }
  }
}

TEST_F(GpuRope, TakesQueriesAndKeysOfAFusedBufferInPlace) {
  for (const DType dtype : kDtypes) {
    for (const Layout layout : kLayouts) {
      for (const std::int64_t head_dim : {64, 72, 6, 1024}) {
        for (const std::int64_t shift : {0, 1, 4}) {
          const Problem p{2, 6, 70, head_dim, layout, dtype, dtype};
          Instance apart(p, fused_strides(p), 3), within(p, fused_strides(p), 3);
          run(apart, shift);
          run(within, shift, true);
          ASSERT_LE(worst_ratio(apart), 1.0) << to_string(p);
          EXPECT_TRUE(apart.y.gaps_are_untouched() && within.y.gaps_are_untouched() && within.dx.gaps_are_untouched());
          ASSERT_EQ(within.y.bytes, apart.y.bytes) << to_string(p);
          ASSERT_EQ(within.dx.bytes, apart.dx.bytes) << to_string(p);
        }
      }
    }
  }
}

TEST_F(GpuRope, GivesFp32OfHalfPrecisionAsAutocastDoes) {
  for (const DType half : {DType::bf16, DType::f16}) {
    for (const Layout layout : kLayouts) {
      Problem p{2, 24, 33, 64, layout, half, DType::f32};
      Instance i(p);
      run(i);
      EXPECT_LE(worst_ratio(i), 1.0) << to_string(p);
    }
  }
}

}  // namespace
}  // namespace syslab::rope
