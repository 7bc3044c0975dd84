// What the lab looks at tensors with, where the tensors are a GPU's: the answers are those of the host.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "check/compare.hpp"
#include "check/fingerprint.hpp"
#include "check/guard.hpp"
#include "core/random.hpp"
#include "device/fill_random.hpp"
#include "tests/device/gpu_fixture.hpp"

namespace syslab::check {
namespace {

using GpuCheck = device::GpuTest;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Sides {
  std::vector<std::byte> found;
  std::vector<double> expected, bounds;
};

// Every kind of element: right, wrong, NaN, poisoned, not asked for, infinite.
Sides sides(const TensorSpec& spec) {
  Sides made;
  made.found.resize(spec.bytes());
  const TensorView view(made.found.data(), spec.dtype, spec.shape);
  fill(view, RandomStream(5), Distribution::normal);
  made.expected = to_doubles(view);
  made.bounds.assign(made.expected.size(), 0.01);
  const std::uint64_t poison = poison_of(spec.dtype);
  for (std::size_t i = 0; i < made.expected.size(); ++i) {
    if (i % 97 == 3) made.expected[i] += 0.02;
    if (i % 101 == 7) made.expected[i] += 0.005;
    if (i % 103 == 9) made.expected[i] = kNaN;
    if (i % 1009 == 11) std::memcpy(made.found.data() + i * size_of(spec.dtype), &poison, size_of(spec.dtype));
    if (i % 211 == 13) made.bounds[i] = 0;
  }
  return made;
}

TEST_F(GpuCheck, ComparingThereSaysWhatComparingHereSays) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{7, 11, 13}, Shape{2, 3, 501, 64}}) {
      const TensorSpec spec{"out", dtype, shape};
      const Sides made = sides(spec);
      const Comparison here = compare(ConstTensorView(made.found.data(), dtype, shape), made.expected, made.bounds);
      const device::Buffer found = to_gpu(made.found), expected = to_gpu(made.expected), bounds = to_gpu(made.bounds);
      const Comparison there =
          compare_there(ConstTensorView(found.data(), dtype, shape),
                        {expected.as<double>(), bounds.as<double>(), shape.elements(), nullptr}, stream);
      EXPECT_EQ(here.describe("out"), there.describe("out"));
      EXPECT_EQ(here.passed, there.passed);
      EXPECT_EQ(here.max_error, there.max_error);
      EXPECT_EQ(here.unwritten, there.unwritten);
      EXPECT_EQ(here.worst_index, there.worst_index);
    }
  }
}

TEST_F(GpuCheck, OneBoundServesAll) {
  const std::vector<float> found{1, 2, 3.5F};
  const std::vector<double> expected{1, 2, 3}, bound{0.25};
  const device::Buffer a = to_gpu(found), b = to_gpu(expected), c = to_gpu(bound);
  const Comparison result =
      compare_there(ConstTensorView(a.data(), DType::f32, {3}), {b.as<double>(), c.as<double>(), 1, nullptr}, stream);
  EXPECT_EQ(result.wrong, 1);
  EXPECT_EQ(result.worst_index, std::vector<std::int64_t>{2});
  EXPECT_EQ(result.found, 3.5);
  EXPECT_EQ(result.worst_tolerance, 0.25);
}

TEST_F(GpuCheck, AFingerprintSeesEveryByteAndOrder) {
  std::vector<unsigned char> bytes(100'003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 7);
  const device::Buffer sum(sizeof(std::uint64_t), "sum", stream);
  const auto of = [&](const std::vector<unsigned char>& data) {
    const device::Buffer there = to_gpu(data);
    fingerprint(there.data(), data.size(), sum.as<std::uint64_t>(), stream);
    return to_host<std::uint64_t>(sum).front();
  };
  const std::uint64_t before = of(bytes);
  EXPECT_EQ(of(bytes), before);
  for (const std::size_t at : {std::size_t{0}, std::size_t{50'000}, bytes.size() - 1}) {
    std::vector<unsigned char> changed = bytes;
    changed[at] ^= 1;
    EXPECT_NE(of(changed), before) << at;
  }
  std::vector<unsigned char> swapped = bytes;
  std::swap(swapped[8], swapped[16]);
  EXPECT_NE(of(swapped), before);
}

TEST_F(GpuCheck, GuardsTellWhatWasWrittenAndWhatWasNot) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const TensorSpec spec{"out", dtype, {5, 77}};
    GuardedTensor tensor(spec, stream);
    EXPECT_FALSE(tensor.violation());
    EXPECT_EQ(tensor.unwritten(), 5 * 77);
    EXPECT_EQ(tensor.nans(), 5 * 77);
    device::fill_random(tensor.view(), RandomStream(1), Distribution::normal, 1.0F, 0, stream);
    EXPECT_EQ(tensor.unwritten(), 0);
    EXPECT_EQ(tensor.nans(), 0);
    EXPECT_FALSE(tensor.violation());
    auto* bytes = static_cast<std::byte*>(tensor.view().data);
    device::fill_bytes(bytes - 3, 0, 2, stream);
    ASSERT_TRUE(tensor.violation());
    EXPECT_NE(tensor.violation()->find("before the first element (at -2)"), std::string::npos) << *tensor.violation();
    tensor.poison();
    device::fill_bytes(bytes + spec.bytes() + 100, 0, 1, stream);
    ASSERT_TRUE(tensor.violation());
    EXPECT_NE(tensor.violation()->find("after the last element (at +100)"), std::string::npos) << *tensor.violation();
  }
}

}  // namespace
}  // namespace syslab::check
