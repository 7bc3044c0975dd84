#include "device/digest.hpp"
#include "device/fill_random.hpp"
#include "tests/ops/cross_entropy_fixture.hpp"
#include "tests/ops/gpu_model_tensors.hpp"

namespace syslab::cross_entropy {
namespace {

using ops::There;

class GpuCrossEntropy : public device::GpuTest {
 protected:
  enum class How { forward_then_backward, both, both_in_place };

  void run(Instance& i, How how, std::int64_t shift = 0) {
    const Rung& rung = find_rung("fused_cuda");
    const There logits(i.logits, stream, shift), row_loss(i.row_loss, stream), lse(i.lse, stream), loss(i.loss, stream),
        scale(i.scale, stream), dlogits(i.dlogits, stream, shift);
    const device::Buffer targets = to_gpu(i.targets);
    const auto* ids = targets.as<std::int64_t>();
    if (how == How::forward_then_backward) {
      rung.forward(i.problem, {logits.view, ids, row_loss.view, lse.view, loss.view}, {}, stream);
      rung.backward(i.problem, {logits.view, ids, lse.view, scale.view, dlogits.view}, {}, stream);
    } else {
      const TensorView gradient = how == How::both ? dlogits.view : logits.view;
      rung.forward_backward(i.problem, {logits.view, ids, scale.view, row_loss.view, lse.view, loss.view, gradient}, {},
                            stream);
    }
    row_loss.bring_back(i.row_loss);
    lse.bring_back(i.lse);
    loss.bring_back(i.loss);
    (how == How::both_in_place ? logits : dlogits).bring_back(i.dlogits);
  }
};

const std::vector<DType> kDtypes = {DType::f32, DType::f16, DType::bf16};

TEST_F(GpuCrossEntropy, StaysWithinItsBoundAtEveryEdge) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t rows : {1, 3, 37}) {
      for (const std::int64_t classes : {1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1000, 1024, 5119, 5120, 10'000}) {
        Instance i({rows, classes, dtype}, 3, 0, 5);
        run(i, How::forward_then_backward);
        ASSERT_LE(i.worst(false), 1.0) << to_string(i.problem);
        run(i, How::both);
        ASSERT_LE(i.worst(true), 1.0) << to_string(i.problem);
      }
    }
  }
}

TEST_F(GpuCrossEntropy, LongRowsAreHeldOrReadAgain) {
  for (const auto& [dtype, classes] : std::vector<std::pair<DType, std::int64_t>>{{DType::bf16, 20'480},
                                                                                  {DType::bf16, 20'488},
                                                                                  {DType::bf16, 50'257},
                                                                                  {DType::f16, 65'536},
                                                                                  {DType::f16, 65'544},
                                                                                  {DType::bf16, 151'936},
                                                                                  {DType::f32, 10'240},
                                                                                  {DType::f32, 10'244},
                                                                                  {DType::f32, 32'768},
                                                                                  {DType::f32, 151'936}}) {
    Instance i({.rows = 3, .classes = classes, .dtype = dtype}, 5, 8 - classes % 8);
    run(i, How::forward_then_backward);
    ASSERT_LE(i.worst(false), 1.0) << to_string(i.problem);
    run(i, How::both);
    ASSERT_LE(i.worst(true), 1.0) << to_string(i.problem);
    EXPECT_TRUE(i.dlogits.gaps_are_untouched());
  }
}

TEST_F(GpuCrossEntropy, TheGradientMayLieWhereTheLogitsDo) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t classes : {5, 1003, 10'000, 40'000, 70'000}) {
      Instance apart({.rows = 4, .classes = classes, .dtype = dtype}), same(apart.problem);
      run(apart, How::both);
      run(same, How::both_in_place);
      EXPECT_EQ(apart.dlogits.bytes, same.dlogits.bytes) << to_string(apart.problem);
    }
  }
}

TEST_F(GpuCrossEntropy, RowsMayLieApartAndBeginAnywhere) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t gap : {0, 1, 3, 8}) {
      for (const std::int64_t shift : {0, 1, 8}) {
        Instance i({.rows = 5, .classes = 1001, .dtype = dtype}, 7, gap);
        run(i, How::both, shift);
        ASSERT_LE(i.worst(true), 1.0) << to_string(dtype) << " gap " << gap << " shift " << shift;
        EXPECT_TRUE(i.dlogits.gaps_are_untouched()) << to_string(dtype) << " gap " << gap << " shift " << shift;
      }
    }
  }
}

TEST_F(GpuCrossEntropy, LogitsThatGrowAlongTheRowAreRescaled) {
  for (const DType dtype : kDtypes) {
    Instance i({.rows = 2, .classes = 30'000, .dtype = dtype});
    for (std::int64_t at = 0; at < 60'000; ++at) i.logits.set(at, static_cast<double>(at % 30'000) / 300 - 50);
    run(i, How::forward_then_backward);
    EXPECT_LE(i.worst(false), 1.0) << to_string(dtype);
    run(i, How::both);
    EXPECT_LE(i.worst(true), 1.0) << to_string(dtype);
  }
}

TEST_F(GpuCrossEntropy, LargeLogitsAndInfinitiesNeitherOverflowNorVanish) {
  for (const DType dtype : kDtypes) {
    Instance i({.rows = 3, .classes = 40, .dtype = dtype});
    for (std::int64_t at = 0; at < 80; ++at) i.logits.set(at, at % 3 == 0 ? 1e4 : -1e4);
    for (std::int64_t at = 80; at < 120; ++at) i.logits.set(at, at % 3 == 0 ? -INFINITY : 1);
    i.targets = {0, 1, 0};
    run(i, How::both);
    EXPECT_LE(i.worst(true), 1.0) << to_string(dtype);
    run(i, How::forward_then_backward);
    EXPECT_LE(i.worst(false), 1.0) << to_string(dtype);
  }
}

TEST_F(GpuCrossEntropy, ATargetOutOfRangeIsNaNInItsRowAlone) {
  for (const std::int64_t target : {std::int64_t{-1}, std::int64_t{300}, INT64_MIN, INT64_MAX}) {
    for (const How how : {How::both, How::forward_then_backward}) {
      Instance i({.rows = 3, .classes = 300, .dtype = DType::bf16});
      i.targets[1] = target;
      run(i, how);
      EXPECT_TRUE(std::isnan(i.loss.values()[0]) && std::isnan(i.row_loss.values()[1]));
      EXPECT_FALSE(std::isnan(i.row_loss.values()[0]) || std::isnan(i.row_loss.values()[2]));
      const std::vector<double> gradient = i.dlogits.values();
      for (std::size_t at = 0; at < gradient.size(); ++at) ASSERT_EQ(std::isnan(gradient[at]), at / 300 == 1) << at;
    }
  }
}

TEST_F(GpuCrossEntropy, ANaNAmongTheLogitsReachesTheLoss) {
  for (const std::int64_t at : {0, 17, 999, 1002}) {
    Instance i({.rows = 1, .classes = 1003, .dtype = DType::bf16});
    i.logits.set(at, NAN);
    run(i, How::both);
    EXPECT_TRUE(std::isnan(i.loss.values()[0])) << at;
  }
}

TEST_F(GpuCrossEntropy, EqualInputsGiveEqualBits) {
  Instance first({.rows = 700, .classes = 10'000, .dtype = DType::bf16}), again(first.problem);
  run(first, How::both);
  run(again, How::both);
  EXPECT_LE(first.worst(true), 1.0);
  EXPECT_EQ(first.dlogits.bytes, again.dlogits.bytes);
  EXPECT_EQ(first.loss.bytes, again.loss.bytes);
}

// 32,768 rows of 151,936 classes are 4.98e9 logits, beyond 32 bits: what the last rows get is what they get alone, and
// of all of them nothing is left out.
TEST_F(GpuCrossEntropy, MoreThan32BitsOfLogitsAreEachTheirRows) {
  constexpr std::int64_t kRows = 32'768, kClasses = 151'936, kFew = 8;
  constexpr std::size_t kRoom = std::size_t{12} << 30;
  if (device::memory_use(kGpu).free < kRoom) GTEST_SKIP() << "12 GiB of GPU memory are wanted";
  struct Set {
    Problem problem;
    device::Buffer logits, losses, scale, targets;
  };
  const auto set_of = [&](std::int64_t rows, float scale, const std::vector<std::int64_t>& ids) {
    return Set{.problem = {rows, kClasses, DType::bf16},
               .logits = device::Buffer(static_cast<std::size_t>(rows * kClasses) * 2, "logits", stream),
               .losses = device::Buffer(static_cast<std::size_t>(2 * rows + 1) * 4, "losses", stream),
               .scale = to_gpu(std::vector<float>{scale}),
               .targets = to_gpu(ids)};
  };
  const auto run_in_place = [&](const Set& set) {
    const std::int64_t rows = set.problem.rows;
    const TensorView logits(set.logits.data(), DType::bf16, {rows, kClasses});
    const auto losses = [&](std::int64_t first, std::int64_t count) {
      return TensorView(set.losses.as<float>() + first, DType::f32, {count});
    };
    find_rung("fused_cuda")
        .forward_backward(set.problem,
                          {logits,
                           set.targets.as<std::int64_t>(),
                           {set.scale.data(), DType::f32, {1}},
                           losses(0, rows),
                           losses(rows, rows),
                           losses(2 * rows, 1),
                           logits},
                          {}, stream);
  };
  std::vector<std::int64_t> ids(kRows);
  for (std::int64_t row = 0; row < kRows; ++row) ids[static_cast<std::size_t>(row)] = row * 7919 % kClasses;
  const Set all = set_of(kRows, 1, ids);
  // The same share of a row: powers of two.
  const Set few = set_of(kFew, static_cast<float>(kFew) / kRows, {ids.end() - kFew, ids.end()});
  device::fill_random(TensorView(all.logits.data(), DType::bf16, {kRows, kClasses}), RandomStream(7),
                      Distribution::normal, 1, 0, stream);
  const std::byte* last = all.logits.as<std::byte>() + (kRows - kFew) * kClasses * 2;
  device::copy(few.logits.data(), last, few.logits.bytes(), stream);
  run_in_place(all);
  run_in_place(few);
  EXPECT_EQ(device::digest(last, few.logits.bytes(), stream),
            device::digest(few.logits.data(), few.logits.bytes(), stream));
  const std::vector<float> found = to_host<float>(all.losses), alone = to_host<float>(few.losses);
  double sum = 0;
  for (std::int64_t row = 0; row < kRows; ++row) sum += found[static_cast<std::size_t>(row)];
  EXPECT_NEAR(found.back(), sum / kRows, 1e-4);
  // ln Σ exp of so many standard normals is ln V + 1/2 within some thousandths, the target's mean nothing.
  EXPECT_NEAR(found.back(), std::log(kClasses) + 0.5, 0.05);
  for (std::int64_t row = 0; row < kFew; ++row) {
    EXPECT_EQ(found[static_cast<std::size_t>(kRows - kFew + row)], alone[static_cast<std::size_t>(row)]) << row;
  }
}

}  // namespace
}  // namespace syslab::cross_entropy
