// `host`: the processor's fp32 addition, and core/dtype.hpp's rounding to 16 bits after it. Adding two 16-bit numbers
// in fp32 and rounding again equals one rounding, because 24 digits are at least 2·11 + 2 (Figueroa, "When is double
// rounding innocuous?", SIGNUM 30(3), 1995).
#include <bit>

#include "core/error.hpp"
#include "ops/accumulation/rungs.hpp"

namespace syslab::accumulation {
namespace {

template <typename T>
std::uint32_t bits_of(T value) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<std::uint32_t>(value);
  } else {
    return value.bits;
  }
}

template <typename Accumulator, typename Addend>
Result sum_in(const Problem& problem) {
  // Quotient of two floats: rounded correctly to fp32 by IEEE 754.
  const Addend constant = from_float<Addend>(1.0F / static_cast<float>(problem.denominator));
  const Accumulator converted = from_float<Accumulator>(to_float(constant));
  Accumulator total = from_float<Accumulator>(0.0F);
  Result result;
  for (std::int64_t i = 1; i <= problem.count; ++i) {
    // Cases 3 and 4 of the hand-out differ in this line alone.
    const float step = problem.how.converted ? to_float(converted) : to_float(constant);
    const Accumulator next = from_float<Accumulator>(to_float(total) + step);
    if (bits_of(next) != bits_of(total)) result.last_change = i;
    total = next;
  }
  result.bits = bits_of(total);
  result.value = to_double(total);
  result.addend = to_double(constant);
  return result;
}

Result host_sum(const Problem& problem) {
  const DType accumulator = problem.how.accumulator, addend = problem.how.addend;
  if (accumulator == DType::f32 && addend == DType::f32) return sum_in<float, float>(problem);
  if (accumulator == DType::f32 && addend == DType::f16) return sum_in<float, f16>(problem);
  if (accumulator == DType::f16 && addend == DType::f16) return sum_in<f16, f16>(problem);
  if (accumulator == DType::bf16 && addend == DType::bf16) return sum_in<bf16, bf16>(problem);
  throw Error(ErrorKind::internal, "accumulation: no host loop for case '" + problem.how.name + "'");
}

}  // namespace

Rung host_rung() {
  Rung rung;
  rung.name = "host";
  rung.teaches = "the processor's own additions, rounded to 16 bits in software";
  rung.dtypes = {DType::f32, DType::f16, DType::bf16};
  rung.sum = host_sum;
  return rung;
}

}  // namespace syslab::accumulation
