#include "tests/device/gpu_fixture.hpp"
#include "tests/ops/gpu_rungs.hpp"
#include "tests/ops/weighted_sum_fixture.hpp"

namespace syslab::weighted_sum {
namespace {

// A tensor's memory on the GPU, copied there and back whole: what was written between rows comes back too.
struct There {
  device::Buffer buffer;
  TensorView view;

  There(Tensor& host, device::Stream stream, std::int64_t shift = 0)
      : buffer(host.bytes.size() + static_cast<std::size_t>(shift) * size_of(host.dtype), "test", stream),
        view(buffer.as<std::byte>() + static_cast<std::size_t>(shift) * size_of(host.dtype), host.dtype, host.shape,
             host.strides) {
    device::copy_now(view.data, host.bytes.data(), host.bytes.size(), stream);
  }
  void bring_back(Tensor& host, device::Stream stream) const {
    device::copy_now(host.bytes.data(), view.data, host.bytes.size(), stream);
  }
};

// Every rung on a GPU.
class GpuWeightedSum : public device::GpuTest, public testing::WithParamInterface<std::string> {
 protected:
  // `shift`: elements by which every tensor misses the alignment of vectors.
  void run(Instance& i, std::int64_t shift = 0) {
    const Rung& rung = find_rung(GetParam());
    const There x(i.x, stream, shift), w(i.w, stream, shift), dy(i.dy, stream, shift), y(i.y, stream, shift),
        dx(i.dx, stream, shift), dw(i.dw, stream, shift);
    rung.forward(i.problem, {x.view, w.view, y.view}, {}, stream);
    rung.backward(i.problem, {x.view, w.view, dy.view, dx.view, dw.view}, {}, stream);
    y.bring_back(i.y, stream);
    dx.bring_back(i.dx, stream);
    dw.bring_back(i.dw, stream);
  }
};

const std::vector<DType> kDtypes = {DType::f32, DType::f16, DType::bf16};

TEST_P(GpuWeightedSum, StaysWithinItsBoundAtEveryEdge) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t rows : {1, 2, 7, 8, 9, 31, 32, 33, 255, 257, 1000}) {
      for (const std::int64_t dim : {1, 3, 4, 8, 15, 16, 17, 64, 100, 127, 128, 129, 256, 264, 1000, 5000}) {
        Instance instance({rows, dim, dtype}, static_cast<unsigned>(rows * 10'000 + dim));
        run(instance);
        ASSERT_LE(worst_ratio(instance), 1.0) << to_string(instance.problem);
      }
    }
  }
}

TEST_P(GpuWeightedSum, RowsMayLieApartAndBeginAnywhere) {
  for (const DType dtype : kDtypes) {
    for (const std::int64_t gap : {0, 1, 3, 8, 16}) {
      for (const std::int64_t shift : {0, 1, 3, 8}) {
        Instance instance({.rows = 65, .dim = 96, .dtype = dtype}, 7, gap);
        run(instance, shift);
        ASSERT_LE(worst_ratio(instance), 1.0) << to_string(dtype) << " gap " << gap << " shift " << shift;
        const std::size_t size = size_of(dtype);
        for (std::size_t row = 0; row + 1 < 65; ++row) {
          for (std::size_t at = (row * (96 + gap) + 96) * size; at < (row + 1) * (96 + gap) * size; ++at) {
            ASSERT_EQ(instance.dx.bytes[at], std::byte{0xff}) << "written between rows, behind row " << row;
          }
        }
      }
    }
  }
}

TEST_P(GpuWeightedSum, ManyChunksOfRowsGiveTheSameBitsEveryTime) {
  const Problem problem{.rows = 40'000, .dim = 48, .dtype = DType::bf16};
  Instance first(problem, 3), again(problem, 3);
  run(first);
  run(again);
  EXPECT_LE(worst_ratio(first), 1.0);
  EXPECT_EQ(first.y.bytes, again.y.bytes);
  EXPECT_EQ(first.dx.bytes, again.dx.bytes);
  EXPECT_EQ(first.dw.bytes, again.dw.bytes);
}

// A NaN in x reaches its row of y and its column of dw; dx does not depend on x.
TEST_P(GpuWeightedSum, ANanReachesWhatDependsOnItAndNothingElse) {
  for (const DType dtype : kDtypes) {
    Instance clean({.rows = 70, .dim = 264, .dtype = dtype}, 11), marked = clean;
    marked.x.store(37 * 264 + 261, NAN);
    run(clean);
    run(marked);
    const std::vector<double> y = marked.y.values(), y_clean = clean.y.values();
    for (std::size_t row = 0; row < 70; ++row) {
      EXPECT_TRUE(row == 37 ? std::isnan(y[row]) : y[row] == y_clean[row]) << to_string(dtype) << " row " << row;
    }
    const std::vector<double> dw = marked.dw.values(), dw_clean = clean.dw.values();
    for (std::size_t d = 0; d < 264; ++d) {
      EXPECT_TRUE(d == 261 ? std::isnan(dw[d]) : dw[d] == dw_clean[d]) << to_string(dtype) << " column " << d;
    }
    EXPECT_EQ(marked.dx.bytes, clean.dx.bytes);
  }
}

TEST_P(GpuWeightedSum, AWorkspaceOfTheAskedSizeChangesNoBit) {
  const Problem problem{.rows = 3000, .dim = 200};
  Instance own(problem, 5), lent(problem, 5);
  run(own);
  const Rung& rung = find_rung(GetParam());
  const device::Buffer workspace(rung.workspace_bytes(problem, Pass::backward), "workspace", stream);
  const There x(lent.x, stream), w(lent.w, stream), dy(lent.dy, stream), dx(lent.dx, stream), dw(lent.dw, stream);
  rung.backward(problem, {x.view, w.view, dy.view, dx.view, dw.view}, {workspace.data(), workspace.bytes()}, stream);
  dw.bring_back(lent.dw, stream);
  EXPECT_EQ(own.dw.bytes, lent.dw.bytes);
}

INSTANTIATE_TEST_SUITE_P(Rungs, GpuWeightedSum, testing::ValuesIn(ops::gpu_rungs(ladder())),
                         [](const auto& about) { return about.param; });

}  // namespace
}  // namespace syslab::weighted_sum
