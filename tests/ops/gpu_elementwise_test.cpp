// Element-wise operators on a GPU: to the bit what the loops of the host give.
#include "ops/elementwise/elementwise.hpp"
#include "tests/ops/gpu_model_tensors.hpp"

namespace syslab::elementwise {
namespace {

using ops::Tensor;
using ops::There;

const std::vector<DType> kDtypes = {DType::f32, DType::f16, DType::bf16};

// Shapes and places: contiguous, with gaps, misaligned, rows in pairs.
struct Place {
  Problem problem;
  std::int64_t gap, shift;
};
const std::vector<Place> kPlaces = {{{1, 1}, 0, 0},     {{3, 5}, 0, 0},     {{7, 4096}, 0, 0}, {{33, 1000}, 8, 0},
                                    {{33, 1003}, 5, 0}, {{33, 1003}, 0, 1}, {{5, 9000}, 0, 0}, {{70'000, 3}, 5, 0}};

class GpuElementwise : public device::GpuTest {
 protected:
  static Tensor random_matrix(DType dtype, const Place& place, unsigned seed) {
    std::mt19937 random(seed);
    return Tensor::matrix(dtype, place.problem.rows, place.problem.dim, place.gap).fill_normal(random);
  }
  static Tensor empty_matrix(DType dtype, const Place& place) {
    return Tensor::matrix(dtype, place.problem.rows, place.problem.dim, place.gap);
  }
  const Rung& ours = find_rung("fused_cuda");
  const Rung& host = find_rung("naive");
};

TEST_F(GpuElementwise, CastsAsTheHostDoes) {
  for (const Place& place : kPlaces) {
    for (const DType from : kDtypes) {
      for (const DType to : kDtypes) {
        Tensor x = random_matrix(from, place, 2), y = empty_matrix(to, place), expected = y;
        host.cast(place.problem, {x.view(), expected.view()}, {});
        const There x_there(x, stream, place.shift), y_there(y, stream, place.shift);
        ours.cast(place.problem, {x_there.view, y_there.view}, stream);
        y_there.bring_back(y);
        ASSERT_EQ(y.bytes == expected.bytes, true) << to_string(place.problem) << to_string(from) << to_string(to);
      }
    }
  }
}

TEST_F(GpuElementwise, AddsAsTheHostDoes) {
  for (const Place& place : kPlaces) {
    for (const DType left : kDtypes) {
      for (const DType right : kDtypes) {
        for (const DType to : {promoted(left, right), DType::f32}) {
          Tensor a = random_matrix(left, place, 2), b = random_matrix(right, place, 3), y = empty_matrix(to, place),
                 expected = y;
          host.add(place.problem, {a.view(), b.view(), expected.view()}, {});
          const There a_there(a, stream, place.shift), b_there(b, stream, place.shift), y_there(y, stream, place.shift);
          ours.add(place.problem, {a_there.view, b_there.view, y_there.view}, stream);
          y_there.bring_back(y);
          ASSERT_EQ(y.bytes == expected.bytes, true) << to_string(place.problem) << to_string(left) << to_string(right);
        }
      }
    }
  }
}

TEST_F(GpuElementwise, SplitsAndJoinsAsTheHostDoes) {
  for (const Place& place : kPlaces) {
    const Tensor x = random_matrix(DType::f32, place, 2);
    Tensor high = empty_matrix(DType::bf16, place), low = empty_matrix(kLowHalf, place), of_host = high,
           low_of_host = low;
    host.split(place.problem, {x.view(), of_host.view(), low_of_host.view()}, {});
    const There x_there(x, stream, place.shift), high_there(high, stream, place.shift), low_there(low, stream);
    ours.split(place.problem, {x_there.view, high_there.view, low_there.view}, stream);
    high_there.bring_back(high);
    low_there.bring_back(low);
    ASSERT_EQ(high.bytes == of_host.bytes && low.bytes == low_of_host.bytes, true) << to_string(place.problem);

    // Rows in the other order, out of their gaps.
    const auto extent = static_cast<std::int64_t>(high.bytes.size() / 2);
    std::vector<std::int64_t> offsets;
    for (std::int64_t row = place.problem.rows; row-- > 0;) offsets.push_back(row * x.strides[0]);
    const device::Buffer offsets_there = to_gpu(offsets);
    Tensor y = empty_matrix(DType::f32, place), expected = y;
    const auto flat = [extent](const ConstTensorView& view) {
      return ConstTensorView(view.data, view.dtype, {extent});
    };
    host.join(place.problem, {flat(of_host.view()), flat(low_of_host.view()), offsets.data(), expected.view()}, {});
    const There y_there(y, stream, place.shift);
    ours.join(place.problem,
              {flat(high_there.view), flat(low_there.view), offsets_there.as<std::int64_t>(), y_there.view}, stream);
    y_there.bring_back(y);
    ASSERT_EQ(y.bytes == expected.bytes, true) << to_string(place.problem);
  }
}

TEST_F(GpuElementwise, ASumMayLieWhereATermDoes) {
  const Place place{{33, 1003}, 5, 0};
  Tensor a = random_matrix(DType::f32, place, 2), b = random_matrix(DType::bf16, place, 3), expected = a;
  host.add(place.problem, {a.view(), b.view(), expected.view()}, {});
  const There a_there(a, stream), b_there(b, stream);
  ours.add(place.problem, {a_there.view, b_there.view, a_there.view}, stream);
  a_there.bring_back(a);
  EXPECT_EQ(a.bytes == expected.bytes, true);
}

TEST_F(GpuElementwise, FillsAsTheHostDoes) {
  for (const Place& place : kPlaces) {
    for (const DType dtype : kDtypes) {
      Tensor y = empty_matrix(dtype, place), expected = y;
      host.fill(place.problem, {0.1, expected.view()}, {});
      const There there(y, stream, place.shift);
      ours.fill(place.problem, {0.1, there.view}, stream);
      there.bring_back(y);
      ASSERT_EQ(y.bytes == expected.bytes, true) << to_string(place.problem) << to_string(dtype);
    }
  }
}

}  // namespace
}  // namespace syslab::elementwise
