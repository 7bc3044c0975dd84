#include "worker/naive_error.hpp"

#include <gtest/gtest.h>

namespace syslab::worker {
namespace {

TEST(NaiveError, IsTheLargestErrorOfEachOutputAfterTheCall) {
  float first[3] = {9, 9, 9}, second[2] = {9, 9};
  Tensors tensors;
  tensors.outputs = {TensorView(first, DType::f32, {3}), TensorView(second, DType::f32, {2})};
  const auto error = error_of([](const Tensors& called) {
    float* a = called.outputs[0].as<float>();
    float* b = called.outputs[1].as<float>();
    a[0] = 1, a[1] = 2, a[2] = 3.5F;
    b[0] = -1, b[1] = 1;
  });
  const std::vector<Expectation> expected{{{1, 2.25, 3}, {1e-3}}, {{-1, 1}, {1e-3}}};
  EXPECT_EQ(error(tensors, expected), (std::vector<double>{0.5, 0}));
}

}  // namespace
}  // namespace syslab::worker
