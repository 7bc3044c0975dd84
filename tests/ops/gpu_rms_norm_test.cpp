#include <tuple>
#include <utility>

#include "tests/ops/gpu_model_tensors.hpp"
#include "tests/ops/rms_norm_fixture.hpp"

namespace syslab::rms_norm {
namespace {

using ops::There;

struct Way {
  std::int64_t shift = 0;
  bool in_place = false, accumulate = false;
  std::size_t workspace = 0;
};

class GpuRmsNorm : public device::GpuTest {
 protected:
  void run(Instance& i, const Way& way = {}) {
    const Rung& rung = find_rung("fused_cuda");
    const auto there = [&](const Tensor& tensor) { return There(tensor, stream, way.shift); };
    There x = there(i.x), delta = there(i.delta), w = there(i.w), h = there(i.h), y = there(i.y), rstd = there(i.rstd),
          dy = there(i.dy), dh = there(i.dh), dx = there(i.dx), dw = there(i.dw);
    ForwardArgs forward{x.view, {}, w.view, {}, y.view, rstd.view};
    if (i.problem.add) {
      forward.delta = delta.view;
      forward.h = way.in_place ? x.view : h.view;
    }
    BackwardArgs backward{dy.view,       i.problem.add ? forward.h : x.view, w.view, rstd.view, {}, dx.view, dw.view,
                          way.accumulate};
    if (i.with_dh) backward.dh = dh.view;
    if (way.in_place) backward.dx = dh.view;
    validate(i.problem, forward);
    validate(i.problem, backward);
    const device::Buffer workspace(way.workspace, "workspace", stream);
    rung.forward(i.problem, forward, {}, stream);
    rung.backward(i.problem, backward, {workspace.data(), workspace.bytes()}, stream);
    (i.problem.add && way.in_place ? x : h).bring_back(i.h);
    y.bring_back(i.y);
    rstd.bring_back(i.rstd);
    (way.in_place ? dh : dx).bring_back(i.dx);
    dw.bring_back(i.dw);
  }
};

const std::vector<DType> kDtypes = {DType::f32, DType::f16, DType::bf16};

TEST_F(GpuRmsNorm, StaysWithinItsBoundsAtEveryEdge) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t rows : {1, 3, 134}) {
      for (const std::int64_t dim : {1, 3, 8, 100, 256, 264, 511, 768, 1024, 1032, 1600, 2560}) {
        for (const bool add : {false, true}) {
          Instance i(problem_of(dtype, rows, dim, add), static_cast<unsigned>(rows * 10'000 + dim));
          i.with_dh = dim % 16 == 0;
          run(i);
          ASSERT_LE(worst_ratio(i), 1.0) << to_string(i.problem);
        }
      }
    }
  }
}

TEST_F(GpuRmsNorm, ManyRowsOfABlockAreTakenInTurn) {
  for (const DType dtype : kDtypes) {
    for (const auto& [rows, dim] : {std::pair{5000, 64}, {4300, 8}, {1100, 520}, {700, 5}}) {
      Instance i(problem_of(dtype, rows, dim), static_cast<unsigned>(dim));
      run(i);
      ASSERT_LE(worst_ratio(i), 1.0) << to_string(i.problem);
    }
  }
}

// dy and h are too large for one kernel in two roles: dw is added up by a second one, of 128 to 132 blocks' parts.
TEST_F(GpuRmsNorm, ManyBytesAreTakenByTwoKernels) {
  for (const auto& [dtype, rows, dim] : {std::tuple{DType::bf16, 14'000, 520},
                                         {DType::bf16, 2048, 2560},
                                         {DType::f16, 263, 8192},
                                         {DType::f32, 1025, 1032},
                                         {DType::bf16, 4400, 1600},
                                         {DType::f16, 14'000, 520},
                                         {DType::f32, 6600, 520}}) {
    Instance i(problem_of(dtype, rows, dim), 3), again(i);
    run(i);
    EXPECT_LE(worst_ratio(i), 1.0) << to_string(i.problem);
    run(again, {.workspace = find_rung("fused_cuda").workspace_bytes(i.problem, Pass::backward)});
    EXPECT_EQ(i.dx.bytes, again.dx.bytes);
    EXPECT_EQ(i.dw.bytes, again.dw.bytes);
  }
}

TEST_F(GpuRmsNorm, LongRowsInRegistersAndBeyond) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t dim : {5120, 8192, 12'288, 12'296, 20'480, 41'000}) {
      Instance i(problem_of(dtype, dim == 8192 ? 134 : 3, dim, true), static_cast<unsigned>(dim));
      run(i);
      ASSERT_LE(worst_ratio(i), 1.0) << to_string(i.problem);
    }
  }
}

TEST_F(GpuRmsNorm, AResidualStreamInFp32TakesAndGivesHalfPrecision) {
  for (const DType half : {DType::bf16, DType::f16}) {
    for (const std::int64_t dim : {7, 64, 768, 2560, 9000}) {
      Problem problem = problem_of(DType::f32, 60, dim, true);
      problem.y_dtype = half;
      Instance i(problem, 9);
      run(i);
      EXPECT_LE(worst_ratio(i), 1.0) << to_string(problem);
    }
  }
}

TEST_F(GpuRmsNorm, RowsMayLieApartAndBeginAnywhere) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t gap : {0, 1, 4, 8}) {
      for (const std::int64_t shift : {0, 1, 4, 8}) {
        Instance i(problem_of(dtype, 65, 96, true), 7, gap);
        run(i, {.shift = shift});
        ASSERT_LE(worst_ratio(i), 1.0) << to_string(dtype) << " gap " << gap << " shift " << shift;
        EXPECT_TRUE(i.h.gaps_are_untouched() && i.y.gaps_are_untouched() && i.dx.gaps_are_untouched());
      }
    }
  }
}

TEST_F(GpuRmsNorm, InPlaceAndWithALentWorkspaceTheBitsAreTheSameEveryTime) {
  for (const std::int64_t dim : {768, 1001}) {
    const Problem problem = problem_of(DType::bf16, 1000, dim, true);
    Instance first(problem, 3), again(problem, 3);
    run(first);
    run(again, {.in_place = true, .workspace = find_rung("fused_cuda").workspace_bytes(problem, Pass::backward)});
    EXPECT_LE(worst_ratio(first), 1.0);
    EXPECT_EQ(first.h.bytes, again.h.bytes);
    EXPECT_EQ(first.y.bytes, again.y.bytes);
    EXPECT_EQ(first.dx.bytes, again.dx.bytes);
    EXPECT_EQ(first.dw.bytes, again.dw.bytes);
  }
}

TEST_F(GpuRmsNorm, AccumulatesOntoTheGradientOfItsWeightsWhenAsked) {
  for (const std::int64_t dim : {64, 77}) {
    Instance i(problem_of(DType::f32, 300, dim), 6);
    run(i);
    const Tensor before = i.dw;
    run(i, {.accumulate = true});
    const BackwardArgs args = i.backward_args();
    const Expected dw = backward_oracle(i.problem, args.dy, args.h, args.w, args.rstd, args.dh, before.view()).dw;
    EXPECT_LE(ops::worst_ratio(i.dw.values(), dw.value, dw.tolerance), 1.0);
    EXPECT_GT(ops::worst_ratio(before.values(), dw.value, dw.tolerance), 1.0);
  }
}

TEST_F(GpuRmsNorm, RefusesWhatNoKernelWasMadeFor) {
  const Rung& rung = find_rung("fused_cuda");
  Problem problem = problem_of(DType::bf16, 4, 8);
  problem.y_dtype = DType::f32;
  EXPECT_TRUE(rung.supports(problem, Pass::forward));
  Instance i(problem_of(DType::f32, 4, 8, true));
  ForwardArgs args = i.forward_args();
  args.delta.dtype = DType::bf16;
  EXPECT_NE(ops::usage_error([&] { rung.forward(i.problem, args, {}, stream); }).find("delta"), std::string::npos);
}

}  // namespace
}  // namespace syslab::rms_norm
