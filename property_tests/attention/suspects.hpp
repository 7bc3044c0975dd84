// Attention with a usual mistake in it, in double precision: what a wrong kernel wrote is compared with what each of
// them would have written. A mistake that explains every element is better evidence than any pattern of errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "property_tests/attention/mistakes.hpp"
#include "property_tests/attention/sample.hpp"

namespace syslab::attention {

// One tensor that a pass wrote, or would have written.
struct Written {
  const char* name;
  Shape shape;
  std::vector<double> values;  // row-major
};

struct Suspect {
  std::string kind;     // mistakes of one kind have the same cure: "an accumulator that is not rescaled"
  const char* look_at;  // where it is mended
  std::int64_t tile;    // of keys; 0: the mistake knows of none
  bool subtle;          // named only where no suspect that is not explains as much
  bool carried;         // a mistake of what is carried from tile to tile: it shows where there are two
  std::vector<Written> written;
};

// Whether elements of a tensor from `first` on are as a trial found them.
using RowIsAsFound = std::function<bool(std::size_t tensor, std::int64_t first, std::span<const double> values)>;

// The suspects of a pass on this sample, out and lse, or dq, dk and dv, of the kinds that are `tried`; without those of
// which a row is not as it was found: most are given up after their first. `more`: mistakes of a number that was read
// off the trial.
std::vector<Suspect> suspects(const Sample& sample, Pass pass, const RowIsAsFound& as_found,
                              const std::function<bool(const std::string& kind)>& tried,
                              std::span<const Mistake> more = {});

}  // namespace syslab::attention
