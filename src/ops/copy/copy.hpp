// Copying: n elements from one place to another. The smallest operator; it measures the memory bandwidth of this
// machine, in and beyond the caches, which is the ceiling of every memory-bound kernel.
//
// Rates count bytes read and bytes written, the convention of STREAM (McCalpin 1995): 2·n·size. A store that misses the
// caches reads its line first (write-allocate); that third of the traffic is not counted, so a kernel with non-temporal
// stores can show up to 1.5 times the rate of others.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "contract/operation.hpp"
#include "core/tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::copy {

struct Problem {
  std::int64_t elements = 1;
  DType dtype = DType::f64;

  std::int64_t bytes() const { return elements * static_cast<std::int64_t>(size_of(dtype)); }  // of one side
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

double traffic_bytes(const Problem& problem);  // read and written

// Both one-dimensional and contiguous; they do not overlap. Any alignment that the dtype allows.
struct Args {
  ConstTensorView from;
  TensorView to;
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const Args& args);

struct Rung : RungInfo {
  // Why this rung cannot take the problem; nothing if it can.
  std::function<std::optional<std::string>(const Problem&)> supports;
  // Preconditions: validate() passed, supports() returned nothing. On the CPU the work is done on return.
  std::function<void(const Problem&, const Args&, device::Stream)> run;
};

// The expected result on a GPU for GPU rungs; empty for others (Operation). Only in fp64, where `from` itself is the
// exact expectation.
using ExpectThere = std::function<std::vector<Expected>(const Inputs&, device::Stream)>;
ExpectThere expect_there(const Problem& problem, const Rung& rung);

// Input from, output to; must be bitwise equal.
Operation operation(const Problem& problem, const Rung& rung);

// From clearest to fastest (beyond the caches). Names are unique.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::copy
