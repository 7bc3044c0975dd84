// A sum in rank order, independent of which rank computes it.
#pragma once

#include <cstdint>
#include <span>

#include "comm/call.hpp"

namespace syslab::comm {

// to[i] = the reduction over `sources`, in their order, of source[i], for `count` elements. bf16 and f16 are reduced in
// fp32 and rounded once; fp32 and fp64 in their own precision. `to` may be one of the sources and overlaps no other. A
// NaN in any source gives NaN.
void reduce_in_order(std::span<const void* const> sources, void* to, DType dtype, std::int64_t count,
                     Reduction reduction);

// The elements that rank `part` of `parts` owns of `count`: [begin, end). The parts cover everything and differ by at
// most one.
struct OwnedPart {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};
constexpr OwnedPart owned_part(std::int64_t count, int part, int parts) {
  const std::int64_t each = count / parts, more = count % parts;
  const auto first = [&](std::int64_t of) { return of * each + (of < more ? of : more); };
  return {first(part), first(part + 1)};
}

}  // namespace syslab::comm
