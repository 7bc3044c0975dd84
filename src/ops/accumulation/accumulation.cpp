#include "ops/accumulation/accumulation.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/text/named.hpp"
#include "ops/accumulation/rungs.hpp"

namespace syslab::accumulation {

std::span<const Case> cases() {
  static const std::vector<Case> all = {
      {"fp32", DType::f32, DType::f32, false, "every rounding is small: seven digits hold"},
      {"fp16", DType::f16, DType::f16, false, "the sum is rounded to steps of 2^-7 above 8, in every addition"},
      {"fp32_fp16_direct", DType::f32, DType::f16, false, "only the addend's own rounding is left, times a thousand"},
      {"fp32_fp16_converted", DType::f32, DType::f16, true,
       "converting first changes nothing: promotion does the same"},
      {"bf16", DType::bf16, DType::bf16, false,
       "stalls at 4, where a step is 2^-6 and the addend less than half of it"},
  };
  return all;
}

const Case& find_case(std::string_view name) { return find_named(cases(), "case of accumulation", name); }

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), host_rung(), gpu_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of accumulation", name); }

std::string bits_text(const Result& result, DType accumulator) {
  return fmt::format("0x{:0{}x}", result.bits, 2 * size_of(accumulator));
}

}  // namespace syslab::accumulation
