#include "check/guard.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace syslab::check {
namespace {

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

// Three rows of four, each followed by two elements of gap.
GuardedTensor strided(DType dtype) { return {TensorSpec{"out", dtype, {3, 4}}, Strides{6, 1}}; }

std::byte* at(const GuardedTensor& tensor, std::int64_t element) {
  const auto width = static_cast<std::int64_t>(size_of(tensor.spec().dtype));
  return static_cast<std::byte*>(tensor.view().data) + element * width;
}

void zero(const GuardedTensor& tensor, std::int64_t element) {
  std::memset(at(tensor, element), 0, size_of(tensor.spec().dtype));
}

void zero_all(const GuardedTensor& tensor) {
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t column = 0; column < 4; ++column) zero(tensor, row * 6 + column);
  }
}

TEST(Guard, StartsPoisonedAndUnharmed) {
  for (const DType dtype : kDTypes) {
    const GuardedTensor tensor = strided(dtype);
    EXPECT_EQ(tensor.unwritten(), 12) << to_string(dtype);
    EXPECT_EQ(tensor.violation(), std::nullopt) << to_string(dtype);
    for (const double value : to_doubles(tensor.view())) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Guard, IsSatisfiedWhenExactlyTheElementsAreWritten) {
  for (const DType dtype : kDTypes) {
    const GuardedTensor tensor = strided(dtype);
    zero_all(tensor);
    EXPECT_EQ(tensor.unwritten(), 0) << to_string(dtype);
    EXPECT_EQ(tensor.violation(), std::nullopt) << to_string(dtype);
  }
}

TEST(Guard, CountsElementsThatWereForgotten) {
  const GuardedTensor tensor = strided(DType::f32);
  zero(tensor, 0);
  zero(tensor, 15);
  EXPECT_EQ(tensor.unwritten(), 10);
}

TEST(Guard, TellsAWriteBeforeTheFirstElement) {
  const GuardedTensor tensor = strided(DType::f64);
  *(at(tensor, -1) + 2) ^= std::byte{1};
  EXPECT_EQ(tensor.violation(), "out: 1 bytes written before the first element (at -6)");
}

TEST(Guard, TellsAWriteAfterTheLastElement) {
  const GuardedTensor tensor = strided(DType::f32);
  zero(tensor, 16);  // the last element is 15
  const auto violation = tensor.violation();
  ASSERT_TRUE(violation.has_value());
  EXPECT_NE(violation->find("after the last element (at +0)"), std::string::npos) << *violation;
}

TEST(Guard, TellsAWriteIntoTheGapBetweenRows) {
  for (const DType dtype : kDTypes) {
    const GuardedTensor tensor = strided(dtype);
    zero(tensor, 5);
    const auto violation = tensor.violation();
    ASSERT_TRUE(violation.has_value());
    EXPECT_NE(violation->find("in the gaps between rows"), std::string::npos) << *violation;
  }
}

TEST(Guard, SeesOneGuardCopiedOverAnother) {
  const GuardedTensor tensor = strided(DType::f32);
  std::memcpy(at(tensor, 4), at(tensor, 5), 4);
  EXPECT_TRUE(tensor.violation().has_value());
}

TEST(Guard, SeesPoisonWrittenIntoAGap) {
  const GuardedTensor tensor = strided(DType::bf16);
  std::memcpy(at(tensor, 4), at(tensor, 0), 2);
  EXPECT_TRUE(tensor.violation().has_value());
}

TEST(Guard, TellsPoisonFromANaNOfArithmetic) {
  volatile float zero = 0.0F;
  const float computed = zero / zero;
  const float library = std::nanf("");
  EXPECT_FALSE(is_poison(&computed, DType::f32));
  EXPECT_FALSE(is_poison(&library, DType::f32));
  volatile double wide_zero = 0.0;
  const double wide = wide_zero / wide_zero;
  EXPECT_FALSE(is_poison(&wide, DType::f64));
  const f16 half = to_f16(computed);
  const bf16 brain = to_bf16(computed);
  EXPECT_FALSE(is_poison(&half, DType::f16));
  EXPECT_FALSE(is_poison(&brain, DType::bf16));
}

// A sum into an output that was not cleared gives a NaN that was computed: it is wrong, and it was written.
TEST(Guard, TellsPoisonFromWhatIsComputedWithIt) {
  GuardedTensor single({"out", DType::f32, Shape{4}}), wide({"out", DType::f64, Shape{4}});
  for (std::int64_t i = 0; i < 3; ++i) {
    volatile float* const one = static_cast<float*>(single.view().data) + i;
    volatile double* const other = static_cast<double*>(wide.view().data) + i;
    *one = *one + 1.0F;
    *other = *other + 1.0;
  }
  EXPECT_EQ(single.unwritten(), 1);
  EXPECT_EQ(wide.unwritten(), 1);
}

TEST(Guard, HasNoGuardThatArithmeticCouldProduce) {
  const GuardedTensor tensor = strided(DType::bf16);
  for (std::int64_t i = -64; i < 0; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at(tensor, i), 2);
    EXPECT_NE(bits, 0xffc0) << "the default NaN";
    EXPECT_TRUE(std::isnan(to_float(bf16{bits})));
  }
}

TEST(Guard, PoisonsAgain) {
  GuardedTensor tensor = strided(DType::f16);
  zero_all(tensor);
  zero(tensor, 4);
  tensor.poison();
  EXPECT_EQ(tensor.unwritten(), 12);
  EXPECT_EQ(tensor.violation(), std::nullopt);
}

TEST(Guard, AlignsTheFirstElementAsTheBufferIs) {
  const GuardedTensor tensor = strided(DType::f16);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.view().data) % device::kAlignment, 0U);
}

TEST(Guard, TakesBroadcastDimensionsAndEmptyTensors) {
  const GuardedTensor broadcast(TensorSpec{"dout", DType::f32, {5, 3}}, Strides{0, 1});
  EXPECT_EQ(broadcast.violation(), std::nullopt);
  const GuardedTensor empty(TensorSpec{"out", DType::f32, {0, 3}});
  EXPECT_EQ(empty.unwritten(), 0);
  EXPECT_EQ(empty.violation(), std::nullopt);
}

TEST(Guard, RefusesNegativeStrides) {
  EXPECT_THROW(GuardedTensor(TensorSpec{"out", DType::f32, {5, 3}}, Strides{-3, 1}), Error);
}

}  // namespace
}  // namespace syslab::check
