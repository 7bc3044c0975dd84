// AdamW and the global norm on a GPU.
#include "device/cuda/graph.hpp"
#include "ops/global_norm/oracle.hpp"
#include "tests/ops/adamw_fixture.hpp"
#include "tests/ops/gpu_model_tensors.hpp"

namespace syslab {
namespace {

using ops::There;
using ops::worst_ratio;

class GpuAdamW : public device::GpuTest {
 protected:
  void run(adamw::Instance& i, std::int64_t shift = 0) {
    const adamw::Rung& rung = adamw::find_rung("fused_cuda");
    const There p(i.p, stream, shift), m(i.m, stream, shift), v(i.v, stream, shift), g(i.g, stream, shift),
        copy(i.copy, stream, shift);
    const device::Buffer scalars = to_gpu(std::vector{i.scalars}), clip = to_gpu(std::vector{i.clip}),
                         non_finite = to_gpu(std::vector{i.non_finite});
    rung.step(i.problem,
              {p.view, m.view, v.view, g.view, i.problem.copy_dtype ? copy.view : TensorView{},
               scalars.as<adamw::Scalars>(), clip.as<float>(), non_finite.as<std::int64_t>()},
              stream);
    p.bring_back(i.p);
    m.bring_back(i.m);
    v.bring_back(i.v);
    copy.bring_back(i.copy);
  }
};

TEST_F(GpuAdamW, StaysWithinItsBoundStepAfterStep) {
  for (const adamw::Options& options : adamw::variants()) {
    for (const std::int64_t elements : {1, 3, 4, 5, 1023, 1024, 1025, 50'003}) {
      for (const auto copy : {std::optional<DType>{}, std::optional{DType::bf16}, std::optional{DType::f16}}) {
        for (const std::int64_t shift : {0, 1}) {
          adamw::Instance i({.elements = elements, .copy_dtype = copy}, options);
          for (int t = 3; t < 6; ++t) {
            i.scalars = adamw::scalars_of(options, t, 0.25);
            i.fill_gradient(static_cast<unsigned>(t));
            const adamw::Oracle exact = i.expected();
            run(i, shift);
            ASSERT_LE(i.worst(exact), 1.0) << to_string(i.problem) << " step " << t << " shift " << shift;
          }
        }
      }
    }
  }
}

TEST_F(GpuAdamW, AStepMayWriteElsewhereThanItReads) {
  for (const std::int64_t shift : {0, 1}) {
    adamw::Instance in_place({.elements = 10'003, .copy_dtype = DType::bf16}), apart = in_place;
    const There old_p(apart.p, stream), old_m(apart.m, stream), old_v(apart.v, stream), p(apart.g, stream, shift),
        m(apart.g, stream), v(apart.g, stream), g(apart.g, stream), copy(apart.copy, stream);
    const device::Buffer scalars = to_gpu(std::vector{apart.scalars}), clip = to_gpu(std::vector{apart.clip});
    adamw::find_rung("fused_cuda")
        .step(apart.problem,
              {p.view, m.view, v.view, g.view, copy.view, scalars.as<adamw::Scalars>(), clip.as<float>(), nullptr,
               old_p.view, old_m.view, old_v.view},
              stream);
    p.bring_back(apart.p);
    m.bring_back(apart.m);
    v.bring_back(apart.v);
    copy.bring_back(apart.copy);
    run(in_place, shift);
    EXPECT_EQ(apart.p.bytes == in_place.p.bytes && apart.m.bytes == in_place.m.bytes, true);
    EXPECT_EQ(apart.v.bytes == in_place.v.bytes && apart.copy.bytes == in_place.copy.bytes, true);
  }
}

TEST_F(GpuAdamW, WeightsInHalvesHaveTheBitsOfWholeOnes) {
  const adamw::Rung& rung = adamw::find_rung("fused_cuda");
  for (const std::int64_t elements : {1, 3, 4, 5, 1025, 50'003}) {
    for (const std::int64_t shift : {0, 1}) {
      adamw::Instance whole({.elements = elements}), split = whole;
      split.problem.split = true;
      ops::Halves p(whole.p);
      for (int t = 3; t < 6; ++t) {
        for (adamw::Instance* one : {&whole, &split}) {
          one->scalars = adamw::scalars_of({.lr = 0.01}, t, 0.25);
          one->fill_gradient(static_cast<unsigned>(t));
        }
        const bool elsewhere = t == 4;  // reads one pair of planes and writes another
        const There old_high(p.high, stream, shift), old_low(p.low, stream), high(p.high, stream), low(p.low, stream),
            m(split.m, stream), v(split.v, stream), g(split.g, stream), old_m(split.m, stream), old_v(split.v, stream);
        const device::Buffer scalars = to_gpu(std::vector{split.scalars}), clip = to_gpu(std::vector{split.clip});
        adamw::Args args{.p = elsewhere ? high.view : old_high.view,
                         .m = m.view,
                         .v = v.view,
                         .g = g.view,
                         .scalars = scalars.as<adamw::Scalars>(),
                         .clip = clip.as<float>(),
                         .low = elsewhere ? low.view : old_low.view};
        if (elsewhere) {
          args.old_p = old_high.view;
          args.old_low = old_low.view;
          args.old_m = old_m.view;
          args.old_v = old_v.view;
        }
        validate(split.problem, args);
        rung.step(split.problem, args, stream);
        (elsewhere ? high : old_high).bring_back(p.high);
        (elsewhere ? low : old_low).bring_back(p.low);
        m.bring_back(split.m);
        v.bring_back(split.v);
        run(whole);
        ASSERT_EQ(p.joined() == whole.p.bytes, true) << elements << " step " << t << " shift " << shift;
        ASSERT_EQ(split.m.bytes == whole.m.bytes && split.v.bytes == whole.v.bytes, true) << elements << " step " << t;
      }
    }
  }
}

TEST_F(GpuAdamW, ASkippedStepTouchesNothing) {
  for (const bool by_flag : {true, false}) {
    adamw::Instance i({.elements = 1003, .copy_dtype = DType::bf16});
    i.g.set(3, NAN);
    i.scalars.skip = by_flag ? 1 : 0;
    i.non_finite = by_flag ? 0 : 1;
    const auto before = std::vector{i.p.bytes, i.m.bytes, i.v.bytes, i.copy.bytes};
    run(i);
    EXPECT_EQ((std::vector{i.p.bytes, i.m.bytes, i.v.bytes, i.copy.bytes}), before);
  }
}

TEST_F(GpuAdamW, AReplayedStepTakesTheNumbersThatItFinds) {
  adamw::Instance i({.elements = 5000}), same = i;
  const There p(i.p, stream), m(i.m, stream), v(i.v, stream), g(i.g, stream);
  const device::Buffer scalars = to_gpu(std::vector{i.scalars});
  const adamw::Args args{p.view, m.view, v.view, g.view, {}, scalars.as<adamw::Scalars>()};
  const device::Capture captured =
      device::capture(stream, [&] { adamw::find_rung("fused_cuda").step(i.problem, args, stream); });
  ASSERT_TRUE(captured.graph.has_value()) << captured.why;
  i.clip = same.clip = 1;
  for (int t = 7; t < 10; ++t) {
    same.scalars = adamw::scalars_of({.lr = 0.1 / t}, t);
    const std::vector<adamw::Scalars> now{same.scalars};
    device::copy_now(scalars.data(), now.data(), sizeof(adamw::Scalars), stream);
    captured.graph->replay(stream);
    const adamw::Oracle exact = same.expected();
    p.bring_back(i.p);
    m.bring_back(i.m);
    v.bring_back(i.v);
    EXPECT_LE(i.worst(exact), 1.0) << t;
    same.p = i.p;
    same.m = i.m;
    same.v = i.v;
  }
}

class GpuGlobalNorm : public device::GpuTest {
 protected:
  struct Found {
    std::vector<double> norm, factor;
    std::int64_t non_finite;
  };
  Found norm_of(ops::Tensor& g, double max_norm, double grad_scale, std::int64_t shift = 0) {
    const global_norm::Rung& rung = global_norm::find_rung("fused_cuda");
    const global_norm::Problem problem{g.shape[0], g.dtype};
    ops::Tensor norm(DType::f32, {1}), factor(DType::f32, {1}), scale(DType::f32, {1});
    scale.set(0, grad_scale);
    const There there(g, stream, shift), norm_there(norm, stream), factor_there(factor, stream),
        scale_there(scale, stream);
    const device::Buffer count = to_gpu(std::vector<std::int64_t>{-1}),
                         workspace(rung.workspace_bytes(problem), "workspace", stream);
    rung.norm(problem,
              {there.view, norm_there.view, factor_there.view, count.as<std::int64_t>(), scale_there.view, max_norm},
              {workspace.data(), workspace.bytes()}, stream);
    norm_there.bring_back(norm);
    factor_there.bring_back(factor);
    return {norm.values(), factor.values(), to_host<std::int64_t>(count)[0]};
  }
};

TEST_F(GpuGlobalNorm, StaysWithinItsBoundAtEveryLength) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t elements : {1, 3, 8, 1023, 4097, 100'003, 3'000'001}) {
      for (const std::int64_t shift : {0, 1}) {
        std::mt19937 random(4);
        ops::Tensor g(dtype, {elements});
        g.fill_normal(random);
        const auto exact = global_norm::oracle({elements, dtype}, g.view(), 1.5, 0.125);
        const Found found = norm_of(g, 1.5, 0.125, shift);
        ASSERT_LE(worst_ratio(found.norm, exact.norm.value, exact.norm.tolerance), 1.0) << elements;
        ASSERT_LE(worst_ratio(found.factor, exact.factor.value, exact.factor.tolerance), 1.0) << elements;
        ASSERT_EQ(found.non_finite, 0);
      }
    }
  }
}

TEST_F(GpuGlobalNorm, OfIntegersIsExactAndWhatIsNotFiniteIsCounted) {
  ops::Tensor g(DType::f32, {160'000});
  for (std::int64_t i = 0; i < 160'000; ++i) g.set(i, i % 2 == 0 ? 3 : -3);
  EXPECT_EQ(norm_of(g, 1, 1).norm[0], 1200.0);
  EXPECT_EQ(norm_of(g, INFINITY, 1).factor[0], 1.0);
  g.set(7, INFINITY);
  g.set(159'999, -INFINITY);
  EXPECT_EQ(norm_of(g, 1, 1).non_finite, 2);
  EXPECT_EQ(norm_of(g, 1, 1).norm[0], INFINITY);
  EXPECT_EQ(norm_of(g, 1, 1).factor[0], 0.0);
  g.set(80'000, NAN);
  const Found found = norm_of(g, 1, 1);
  EXPECT_EQ(found.non_finite, 3);
  EXPECT_TRUE(std::isnan(found.norm[0]) && std::isnan(found.factor[0]));
}

TEST_F(GpuGlobalNorm, ScalingMultipliesEveryElementOnce) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t elements : {1, 9, 8192, 8193, 100'003}) {
      for (const std::int64_t shift : {0, 1}) {
        std::mt19937 random(4);
        ops::Tensor g(dtype, {elements}), factor(DType::f32, {1});
        g.fill_normal(random);
        factor.set(0, 0.3);
        const Expected exact = global_norm::scale_oracle({elements, dtype}, g.view(), factor.values()[0]);
        const There there(g, stream, shift), by(factor, stream);
        global_norm::find_rung("fused_cuda").scale({elements, dtype}, {there.view, by.view}, stream);
        there.bring_back(g);
        ASSERT_LE(worst_ratio(g.values(), exact.value, exact.tolerance), 1.0) << elements << to_string(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace syslab
