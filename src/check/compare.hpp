// Comparing an output with its oracle: element by element against a derived bound, with the worst place named.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "contract/expected.hpp"
#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::check {

struct Comparison {
  bool passed = false;
  std::int64_t elements = 0;              // found
  std::int64_t compared = 0;              // elements with an expected value (NaN in `expected` means: not asked)
  std::int64_t nans = 0;                  // found that are NaN, asked for or not; counted on the host only
  std::int64_t wrong = 0;                 // beyond their tolerance, or NaN, or still poisoned
  std::int64_t unwritten = 0;             // still hold the poison
  std::int64_t made_of_poison = 0;        // computed from the poison, seen on the host only
  double worst_error = 0;                 // |out − expected| where error/tolerance is largest
  double worst_tolerance = 0;             // its bound there
  double worst_ratio = 0;                 // error / tolerance; > 1 is wrong
  double max_error = 0;                   // largest |out − expected| anywhere
  std::vector<std::int64_t> worst_index;  // coordinates in the output's shape
  double found = 0, expected = 0;         // there
  // The smallest box that holds all wrong elements, both ends included: a fault of tiles shows in its edges.
  std::vector<std::int64_t> wrong_first, wrong_last;
  std::string wrong_box() const;  // "2, 16…31, 0…63"
  // "out[2, 17, 5]: found …, expected … ± …; 12 of 4096 wrong, within [2, 16…31, 0…63], 3 never written"; where another
  // call's answer was expected and is NaN throughout: "out: every value that it is compared with is NaN, and so are 64
  // of the 64 found"
  std::string describe(std::string_view name) const;
};

// `expected` and `tolerance` are row-major; `tolerance` may have one element for all. An infinite expectation must be
// met exactly; NaN found is always wrong.
Comparison compare(const ConstTensorView& found, std::span<const double> expected, std::span<const double> tolerance);

// The same where what is expected lies in the memory of the stream's device (the CPU's too), as `found` does,
// contiguous. Queues on the stream and waits.
Comparison compare_there(const ConstTensorView& found, const ExpectedThere& expected, device::Stream stream);

}  // namespace syslab::check
