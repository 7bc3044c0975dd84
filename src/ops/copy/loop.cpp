// `loop`: a loop over words as the compiler translates it. It is built with -fno-tree-loop-distribute-patterns, or the
// compiler would recognise a copy and call memcpy.
#include <cstddef>
#include <cstdint>

#include "ops/copy/rungs.hpp"

namespace syslab::copy {
namespace {

void loop_bytes(const std::byte* from, std::byte* to, std::size_t bytes) {
  const std::size_t words = bytes / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;  // not by a cast: tensors need not lie on words
    __builtin_memcpy(&word, from + i * sizeof(word), sizeof(word));
    __builtin_memcpy(to + i * sizeof(word), &word, sizeof(word));
  }
  for (std::size_t at = words * sizeof(std::uint64_t); at < bytes; ++at) to[at] = from[at];
}

}  // namespace

Rung loop_rung() {
  Rung rung;
  rung.name = "loop";
  rung.teaches = "a loop over words as the compiler vectorises it, on one thread";
  rung.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  rung.supports = [](const Problem&) -> std::optional<std::string> { return std::nullopt; };
  rung.run = [](const Problem& problem, const Args& args, device::Stream) {
    loop_bytes(static_cast<const std::byte*>(args.from.data), static_cast<std::byte*>(args.to.data),
               static_cast<std::size_t>(problem.bytes()));
  };
  return rung;
}

}  // namespace syslab::copy
