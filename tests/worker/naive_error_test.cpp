#include "worker/cases/naive_error.hpp"

#include <gtest/gtest.h>

namespace syslab::worker {
namespace {

TEST(NaiveError, IsTheLargestErrorOfEachOutputAfterTheCall) {
  float first[3] = {9, 9, 9}, second[2] = {9, 9};
  const Outputs outputs{TensorView(first, DType::f32, {3}), TensorView(second, DType::f32, {2})};
  const OperationCall naive = [](const Inputs&, const Outputs& out, device::Stream) {
    float* a = out[0].as<float>();
    float* b = out[1].as<float>();
    a[0] = 1, a[1] = 2, a[2] = 3.5F;
    b[0] = -1, b[1] = 1;
  };
  const std::vector<Expected> expected{{{1, 2.25, 3}, {1e-3}}, {{-1, 1}, {1e-3}}};
  EXPECT_EQ(naive_errors(naive, {}, outputs, expected, {}), (std::vector<double>{0.5, 0}));
}

}  // namespace
}  // namespace syslab::worker
