#include "check/forgotten.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "check/compare.hpp"

namespace syslab::check {
namespace {

constexpr DType kPoisoned[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

void put_bits(const GuardedTensor& tensor, std::int64_t element, std::uint64_t bits) {
  const std::size_t width = size_of(tensor.spec().dtype);
  std::memcpy(static_cast<std::byte*>(tensor.view().data) + element * static_cast<std::int64_t>(width), &bits, width);
}

// Writes elements 0 to 2, one of them with the poison's own word; forgets element 3.
void forgetful_call(const GuardedTensor& tensor) {
  put_bits(tensor, 0, 0);
  put_bits(tensor, 1, 0);
  put_bits(tensor, 2, poison_of(tensor.spec().dtype));
}

TEST(Forgotten, IsWhatNeitherPoisonWasReplacedIn) {
  for (const DType dtype : kPoisoned) {
    GuardedTensor tensor(TensorSpec{"out", dtype, {2, 2}});
    forgetful_call(tensor);
    EXPECT_EQ(tensor.unwritten(), 2) << to_string(dtype);  // one pattern alone cannot tell
    GuardedTensor* const outputs[] = {&tensor};
    settle_forgotten(outputs, [&] { forgetful_call(tensor); });
    EXPECT_EQ(tensor.unwritten(), 1) << to_string(dtype);
    EXPECT_EQ(tensor.nans(), 2) << to_string(dtype);
    EXPECT_EQ(to_doubles(tensor.view())[0], 0.0);
    EXPECT_EQ(tensor.violation(), std::nullopt);
  }
}

TEST(Forgotten, KeepsWhatTheFirstCallLeftItsHarmToo) {
  GuardedTensor tensor(TensorSpec{"out", DType::f32, {4}}), other(TensorSpec{"lse", DType::f32, {1}});
  put_bits(tensor, 0, 0x3f80'0000);
  put_bits(tensor, 4, 0);  // past the end
  put_bits(other, 0, 0x4000'0000);
  GuardedTensor* const outputs[] = {&tensor, &other};
  settle_forgotten(outputs, [&] {
    for (std::int64_t i = 0; i < 4; ++i) put_bits(tensor, i, 0);
    put_bits(other, 0, 0);
  });
  EXPECT_EQ(tensor.unwritten(), 3);  // in the call that is judged
  EXPECT_EQ(to_doubles(tensor.view())[0], 1.0);
  EXPECT_EQ(to_doubles(other.view())[0], 2.0);
  EXPECT_TRUE(tensor.violation());
}

TEST(Forgotten, AsksNobodyTwiceWhoWroteAll) {
  GuardedTensor tensor(TensorSpec{"out", DType::f32, {1}});
  put_bits(tensor, 0, 0x7fc0'0000);
  GuardedTensor* const outputs[] = {&tensor};
  settle_forgotten(outputs, [] { FAIL(); });
  EXPECT_EQ(tensor.unwritten(), 0);
  EXPECT_EQ(tensor.nans(), 1);
}

TEST(Forgotten, ASumOnTopOfThePoisonIsKnownAsSuch) {
  GuardedTensor tensor(TensorSpec{"out", DType::f32, {2}});
  auto* const values = static_cast<volatile float*>(tensor.view().data);
  values[0] = values[0] + 1.0F;
  values[1] = 0.0F;
  const double expected[] = {1.0, 0.0}, bound[] = {1e-3};
  const Comparison result = compare(tensor.view(), expected, bound);
  EXPECT_EQ(result.unwritten, 0);
  EXPECT_EQ(result.made_of_poison, 1);
  put_bits(tensor, 0, 0x7fc0'0000);
  EXPECT_EQ(compare(tensor.view(), expected, bound).made_of_poison, 0);
}

}  // namespace
}  // namespace syslab::check
