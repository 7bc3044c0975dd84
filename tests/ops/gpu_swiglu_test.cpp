#include "tests/ops/gpu_model_tensors.hpp"
#include "tests/ops/swiglu_fixture.hpp"

namespace syslab::swiglu {
namespace {

using ops::There;

class GpuSwiglu : public device::GpuTest {
 protected:
  static TensorView half(const There& both, const Problem& p, std::int64_t which) {
    TensorView view = both.view;
    view.shape = Shape{p.rows, p.dim};
    view.data = static_cast<std::byte*>(view.data) + static_cast<std::size_t>(which * p.dim) * size_of(p.dtype);
    return view;
  }

  // In place, dgate and dup lie in `both` afterwards and out in `dout`.
  void run(Instance& i, std::int64_t shift = 0, bool in_place = false, bool recompute = true) {
    const Rung& rung = find_rung("fused_cuda");
    const Problem& p = i.problem;
    const There both(i.both, stream, shift), dout(i.dout, stream, shift), out(i.out, stream, shift),
        dgate(i.dgate, stream, shift), dup(i.dup, stream, shift), again(i.again, stream, shift);
    const TensorView gate = half(both, p, 0), up = half(both, p, 1);
    rung.forward(p, {gate, up, out.view}, {}, stream);
    BackwardArgs args{gate, up, dout.view, dgate.view, dup.view, {}};
    if (in_place) {
      args.dgate = gate;
      args.dup = up;
    }
    if (recompute) args.out = in_place ? dout.view : again.view;
    validate(p, args);
    rung.backward(p, args, {}, stream);
    out.bring_back(i.out);
    dgate.bring_back(i.dgate);
    dup.bring_back(i.dup);
    again.bring_back(i.again);
    if (in_place) {
      both.bring_back(i.both);
      dout.bring_back(i.dout);
    }
  }
};

const std::vector<DType> kDtypes = {DType::f32, DType::f16, DType::bf16};

TEST_F(GpuSwiglu, StaysWithinItsBoundsAtEveryEdgeAndFarFromZero) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t rows : {1, 67}) {
      for (const std::int64_t dim : {1, 4, 7, 8, 24, 100, 1000, 2731, 4096}) {
        for (const double scale : {1.0, 40.0}) {
          Instance i({rows, dim, dtype}, static_cast<unsigned>(rows + dim), 0, scale);
          run(i);
          ASSERT_LE(worst_ratio(i), 1.0) << to_string(i.problem) << " scale " << scale;
        }
      }
    }
  }
}

TEST_F(GpuSwiglu, RowsMayLieApartAndBeginAnywhere) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t gap : {0, 1, 4, 8}) {
      for (const std::int64_t shift : {0, 1, 4, 8}) {
        Instance i({65, 96, dtype}, 7, gap);
        run(i, shift);
        ASSERT_LE(worst_ratio(i), 1.0) << to_string(dtype) << " gap " << gap << " shift " << shift;
        EXPECT_TRUE(i.out.gaps_are_untouched() && i.dgate.gaps_are_untouched() && i.dup.gaps_are_untouched());
      }
    }
  }
}

TEST_F(GpuSwiglu, InPlaceTheBitsAreTheSame) {
  for (const std::int64_t dim : {1024, 1001}) {
    Instance apart({300, dim, DType::bf16}), within({300, dim, DType::bf16});
    run(apart);
    run(within, 0, true);
    EXPECT_EQ(to_doubles(within.half(0)), apart.dgate.values());
    EXPECT_EQ(to_doubles(within.half(1)), apart.dup.values());
    EXPECT_EQ(within.dout.bytes, apart.out.bytes);
    EXPECT_EQ(apart.again.bytes, apart.out.bytes);
  }
}

TEST_F(GpuSwiglu, WritesOutAgainOnlyWhenAsked) {
  Instance i({64, 128, DType::bf16});
  const std::vector<std::byte> untouched = i.again.bytes;
  run(i, 0, false, false);
  EXPECT_EQ(i.again.bytes, untouched);
}

}  // namespace
}  // namespace syslab::swiglu
