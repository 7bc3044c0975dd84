// Lists of operations on the CPU, where eager_cuda rungs are proved without a GPU: right within the operators' own
// bounds in fp32, within those and what a rounding after every operation may add in half precision, in as many kernels
// as a framework launches.
#include "ops/framework/framework.hpp"

#include <gtest/gtest.h>

#include "ops/adamw/eager.hpp"
#include "tests/ops/adamw_fixture.hpp"
#include "tests/ops/eager_fixture.hpp"

namespace syslab::framework {
namespace {

using ops::Tensor;

constexpr device::Stream kHost{};

template <typename Work>
Launches counted(const Work& work) {
  const Launches before = launches();
  work();
  return launches() - before;
}

// --- operations ------------------------------------------------------------------------------------------------------

TEST(FrameworkOperations, TakeOperandsOfAnyStrideAndBroadcast) {
  Tensor x = Tensor::matrix(DType::f32, 3, 5, 2), row(DType::bf16, {5}), y = Tensor::matrix(DType::f16, 3, 5, 1);
  for (std::int64_t i = 0; i < 15; ++i) x.set(i, static_cast<double>(i));
  for (std::int64_t j = 0; j < 5; ++j) row.set(j, static_cast<double>(j - 2));
  combine(Binary::multiply, x.view(), across_rows(row.view(), 3, 5), y.view(), kHost);
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(y.values()[i], static_cast<double>(i) * (static_cast<double>(i % 5) - 2)) << i;
  }
  EXPECT_TRUE(y.gaps_are_untouched());
  Tensor column(DType::f32, {3});
  sum_rows(x.view(), column.view(), kHost);
  EXPECT_EQ(column.values(), (std::vector<double>{10, 35, 60}));
  combine(Binary::subtract, x.view(), across_columns(column.view(), 3, 5), x.view(), kHost);
  EXPECT_EQ(x.values()[14], 14 - 60);
}

TEST(FrameworkOperations, RoundOnceToTheDtypeOfTheResult) {
  Tensor a(DType::bf16, {1}), b(DType::f32, {1}), y(DType::bf16, {1}), wide(DType::f32, {1});
  a.set(0, 1);
  b.set(0, 0x1p-9);
  combine(Binary::add, a.view(), b.view(), y.view(), kHost);
  combine(Binary::add, a.view(), b.view(), wide.view(), kHost);
  EXPECT_EQ(y.values()[0], 1);
  EXPECT_EQ(wide.values()[0], 1 + 0x1p-9);
}

TEST(FrameworkOperations, AnIndexThatNamesNothingIsNanAndReadsNothing) {
  Tensor x = Tensor::matrix(DType::f32, 3, 4), picked(DType::f32, {3});
  for (std::int64_t i = 0; i < 12; ++i) x.set(i, static_cast<double>(i));
  const std::vector<std::int64_t> index = {2, -1, 4};
  gather(x.view(), index.data(), picked.view(), kHost);
  EXPECT_EQ(picked.values()[0], 2);
  EXPECT_TRUE(std::isnan(picked.values()[1]) && std::isnan(picked.values()[2]));
  fill(0, x.view(), kHost);
  picked.set_all({5, 6, 7});
  scatter(picked.view(), index.data(), x.view(), kHost);
  EXPECT_EQ(x.values()[2], 5);
  EXPECT_TRUE(std::isnan(x.values()[4]) && std::isnan(x.values()[8]));
  EXPECT_EQ(x.values()[11], 0);
}

TEST(FrameworkOperations, TheLargestOfARowIsTheFirstOfEqualsAndANanBeforeAll) {
  Tensor x = Tensor::matrix(DType::f32, 3, 4), y(DType::f32, {3});
  x.set_all({1, 3, 3, 2, -INFINITY, -INFINITY, -INFINITY, -INFINITY, 1, NAN, 7, NAN});
  std::vector<std::int64_t> where(3);
  largest_of_rows(x.view(), y.view(), where.data(), kHost);
  EXPECT_EQ(where, (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_EQ(y.values()[0], 3);
  EXPECT_TRUE(std::isnan(y.values()[2]));
}

TEST(FrameworkOperations, AreCountedAndExtraOnesApart) {
  Tensor x(DType::f32, {4});
  const Launches found = counted([&] {
    fill(1, x.view(), kHost);
    {
      const Extra extra;
      apply(Unary::negate, x.view(), x.view(), kHost);
    }
    apply(WithNumber::add, x.view(), 3, x.view(), kHost);
  });
  EXPECT_EQ(found, (Launches{.all = 3, .extra = 1}));
  EXPECT_EQ(x.values()[0], 2);
}

TEST(FrameworkOperations, DoNothingWhereDeviceMemorySaysSo) {
  Tensor x(DType::f32, {2});
  x.set_all({1, 2});
  std::int32_t skip = 1;
  std::int64_t bad = 0;
  const float number = 0.5F;
  const auto halve = [&](const Unless& unless) { apply(WithNumber::divide, x.view(), 2, x.view(), kHost, unless); };
  halve({.not_zero = &skip});
  skip = 0;
  bad = 3;
  halve({.not_zero = &skip, .any = &bad});
  halve({.number = &number, .equals = 0.5F});
  EXPECT_EQ(x.values()[1], 2);
  bad = 0;
  halve({.not_zero = &skip, .any = &bad, .number = &number, .equals = 0});
  EXPECT_EQ(x.values()[1], 1);
}

// --- rungs -----------------------------------------------------------------------------------------------------------

rms_norm::Rung norm_by_operations() {
  rms_norm::Rung rung;
  rung.forward = rms_norm::eager_forward;
  rung.backward = rms_norm::eager_backward;
  return rung;
}

TEST(EagerRmsNorm, IsRightAndLaunchesWhatAFrameworkDoes) {
  for (const bool add : {false, true}) {
    for (const bool with_dh : {false, true}) {
      for (const auto& [x, y] : {std::pair(DType::f32, DType::f32), std::pair(DType::f32, DType::bf16),
                                 std::pair(DType::bf16, DType::bf16), std::pair(DType::f16, DType::f16)}) {
        rms_norm::Problem p = rms_norm::problem_of(x, 7, 24, add);
        p.y_dtype = y;
        rms_norm::Instance i(p, 3, 5);
        i.with_dh = with_dh;
        SCOPED_TRACE(rms_norm::to_string(p));
        const Launches found = counted([&] { i.run(norm_by_operations()); });
        EXPECT_EQ(found.of_framework(),
                  rms_norm::eager_kernels(p, Pass::forward) + rms_norm::eager_kernels(p, Pass::backward, with_dh));
        EXPECT_LE(worst(i), 1);
        EXPECT_TRUE(i.y.gaps_are_untouched() && i.dx.gaps_are_untouched());
      }
    }
  }
}

TEST(EagerRmsNorm, AddsToWhatDwHeldAndWritesOverDh) {
  const rms_norm::Problem p = rms_norm::problem_of(DType::f32, 5, 8);
  rms_norm::Instance i(p);
  const rms_norm::Rung rung = norm_by_operations();
  i.run(rung);
  const std::vector<double> dw = i.dw.values(), dx = i.dx.values();
  rms_norm::BackwardArgs args = i.backward_args();
  args.accumulate = true;
  args.dx = i.dh.view();
  const Launches found = counted([&] { rung.backward(p, args, {}, kHost); });
  EXPECT_EQ(found.of_framework(), rms_norm::eager_kernels(p, Pass::backward, true, true));
  for (std::size_t d = 0; d < dw.size(); ++d) EXPECT_EQ(i.dw.values()[d], 2 * dw[d]);
  EXPECT_EQ(i.dh.values(), dx);
}

swiglu::Rung gate_by_operations() {
  swiglu::Rung rung;
  rung.forward = swiglu::eager_forward;
  rung.backward = swiglu::eager_backward;
  return rung;
}

TEST(EagerSwiglu, IsRightAndLaunchesWhatAFrameworkDoes) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const swiglu::Problem p{.rows = 6, .dim = 20, .dtype = dtype};
    swiglu::Instance i(p, 2, 3);
    SCOPED_TRACE(swiglu::to_string(p));
    const Launches found = counted([&] { i.run(gate_by_operations()); });
    EXPECT_EQ(found.of_framework(), swiglu::eager_kernels(Pass::forward) + swiglu::eager_kernels(Pass::backward));
    EXPECT_EQ(found.extra, 4);
    EXPECT_LE(worst(i), 1);
    EXPECT_TRUE(i.out.gaps_are_untouched() && i.dgate.gaps_are_untouched() && i.dup.gaps_are_untouched());
  }
}

TEST(EagerSwiglu, WritesOverItsInputs) {
  const swiglu::Problem p{.rows = 4, .dim = 8};
  swiglu::Instance i(p);
  const swiglu::Rung rung = gate_by_operations();
  i.run(rung);
  rung.backward(p, {i.half(0), i.half(1), i.dout.view(), i.half(0), i.half(1), i.dout.view()}, {}, kHost);
  EXPECT_EQ(to_doubles(i.half(0)), i.dgate.values());
  EXPECT_EQ(to_doubles(i.half(1)), i.dup.values());
  EXPECT_EQ(i.dout.values(), i.again.values());
}

rope::Rung rotation_by_operations() {
  rope::Rung rung;
  rung.forward = rope::eager_forward;
  rung.backward = rope::eager_backward;
  return rung;
}

TEST(EagerRope, IsRightAndLaunchesWhatAFrameworkDoes) {
  for (const rope::Layout layout : {rope::Layout::interleaved, rope::Layout::halves}) {
    for (const auto& [x, y] : {std::pair(DType::f32, DType::f32), std::pair(DType::bf16, DType::f32),
                               std::pair(DType::bf16, DType::bf16), std::pair(DType::f16, DType::f16)}) {
      const rope::Problem p{
          .batch = 2, .heads = 4, .seq = 5, .head_dim = 12, .layout = layout, .x_dtype = x, .y_dtype = y};
      rope::Instance i(p, rope::fused_strides(p));
      SCOPED_TRACE(rope::to_string(p));
      const Launches found = counted([&] { i.run(rotation_by_operations()); });
      EXPECT_EQ(found,
                (Launches{.all = rope::eager_kernels(p, Pass::forward) + rope::eager_kernels(p, Pass::backward)}));
      EXPECT_LE(worst(i), 1);
      EXPECT_TRUE(i.y.gaps_are_untouched() && i.dx.gaps_are_untouched());
    }
  }
}

cross_entropy::Rung loss_by_operations() {
  cross_entropy::Rung rung;
  rung.forward = cross_entropy::eager_forward;
  rung.backward = cross_entropy::eager_backward;
  rung.forward_backward = cross_entropy::eager_forward_backward;
  return rung;
}

TEST(EagerCrossEntropy, IsRightAndLaunchesWhatAFrameworkDoes) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const cross_entropy::Problem p{.rows = 6, .classes = 37, .dtype = dtype};
    cross_entropy::Instance i(p, 5, 3);
    SCOPED_TRACE(to_string(p));
    const cross_entropy::Rung rung = loss_by_operations();
    const Launches both = counted([&] { i.both(rung); });
    EXPECT_EQ(both.of_framework(), cross_entropy::eager_kernels(p, Pass::both));
    EXPECT_EQ(both.extra, 1);
    EXPECT_LE(worst(i), 1);
    const std::vector<double> gradient = i.dlogits.values();
    EXPECT_EQ(counted([&] { i.forward(rung); }).of_framework(), cross_entropy::eager_kernels(p, Pass::forward));
    const Launches backward = counted([&] { i.backward(rung); });
    EXPECT_EQ(backward.of_framework(), cross_entropy::eager_kernels(p, Pass::backward));
    EXPECT_EQ(backward.extra, dtype == DType::f32 ? 4 : 5);
    EXPECT_EQ(i.dlogits.values(), gradient) << "the passes one by one make the same bits";
    EXPECT_TRUE(i.dlogits.gaps_are_untouched());
  }
}

TEST(EagerCrossEntropy, ATargetThatIsNoClassMakesItsRowNan) {
  const cross_entropy::Problem p{.rows = 3, .classes = 4};
  cross_entropy::Instance i(p);
  i.targets[1] = 4;
  i.both(loss_by_operations());
  EXPECT_TRUE(std::isnan(i.loss.values()[0]));
  for (std::size_t at = 0; at < 12; ++at) EXPECT_EQ(std::isnan(i.dlogits.values()[at]), at / 4 == 1) << at;
}

adamw::Rung step_by_operations() {
  adamw::Rung rung;
  rung.step = adamw::eager_step;
  return rung;
}

TEST(EagerAdamw, IsRightAndLaunchesWhatAFrameworkDoes) {
  for (const adamw::Options& options : adamw::variants()) {
    const adamw::Problem p{.elements = 1000, .copy_dtype = DType::bf16};
    adamw::Instance i(p, options);
    const Launches found = counted([&] { EXPECT_LE(i.step(step_by_operations()), 1); });
    EXPECT_EQ(found.of_framework(), adamw::eager_kernels(p));
    EXPECT_EQ(found.extra, 2 + 2 + 1 + 1) << "scale and clip, the other decay, the correction, the copy";
  }
}

TEST(EagerAdamw, ASkippedStepChangesNothing) {
  adamw::Instance i({.elements = 100});
  const std::vector<double> p = i.p.values(), m = i.m.values(), v = i.v.values();
  i.non_finite = 1;
  i.step(step_by_operations());
  EXPECT_EQ(i.p.values(), p);
  EXPECT_EQ(i.m.values(), m);
  EXPECT_EQ(i.v.values(), v);
}

}  // namespace
}  // namespace syslab::framework
