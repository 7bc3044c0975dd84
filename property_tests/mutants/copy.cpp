#include "property_tests/mutants/copy.hpp"

#include <cstring>

namespace syslab::copy {
namespace {

// `whole_lines` writes at most one element too many: enough to be wrong, and within what the laws keep around the
// range.
std::int64_t bytes_to_copy(Fault fault, const Problem& problem) {
  const std::int64_t bytes = problem.bytes(), size = static_cast<std::int64_t>(size_of(problem.dtype));
  if (fault == Fault::dropped_tail) return bytes > 8 ? bytes / 8 * 8 : bytes;
  if (fault == Fault::whole_lines) return std::min((bytes + 63) / 64 * 64, bytes + size);
  return bytes;
}

}  // namespace

std::vector<Mutant> mutants() {
  return {
      {Fault::dropped_tail, "dropped_tail", "copy.equals_source"},
      {Fault::whole_lines, "whole_lines", "copy.writes_nothing_outside"},
  };
}

Rung plain_with(Fault fault) {
  Rung rung;
  rung.name = "twin";
  for (const Mutant& mutant : mutants()) {
    if (mutant.fault == fault) rung.name = mutant.name;
  }
  rung.teaches = "what the laws can find";
  rung.dtypes = {DType::f32, DType::bf16};
  rung.supports = [](const Problem&) -> std::optional<std::string> { return std::nullopt; };
  rung.run = [fault](const Problem& problem, const Args& args, device::Stream) {
    std::memcpy(args.to.data, args.from.data, static_cast<std::size_t>(bytes_to_copy(fault, problem)));
  };
  return rung;
}

}  // namespace syslab::copy
