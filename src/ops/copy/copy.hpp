// Copying: n elements from one place to another. The smallest operator there is, kept for what it tells: how many bytes
// a second this machine moves, near and far, which is the ceiling of every kernel that does little else.
//
// Rates count bytes read and bytes written, the convention of STREAM (McCalpin 1995): 2·n·size. A store that misses the
// caches reads its line first (write-allocate); that third of the traffic is not counted, which is why a kernel that
// goes round the caches can show up to 1.5 times the rate of one that does not.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/tensor.hpp"
#include "ops/operation.hpp"
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

// Throws Error(usage) naming the field or tensor, what it holds and what it must hold.
void validate(const Problem& problem);
void validate(const Problem& problem, const Args& args);

struct Rung : ops::RungInfo {
  // Why this rung cannot take the problem; nothing when it can.
  std::function<std::optional<std::string>(const Problem&)> supports;
  // Preconditions: validate() passed, supports() said nothing. On the CPU the work is done on return.
  std::function<void(const Problem&, const Args&, device::Stream)> run;
};

// What must come out where a rung on a GPU has its tensors; empty elsewhere (ops::Operation). In fp64, where `from` is
// its own expectation, to the bit; a case in another dtype has none.
using ExpectThere = std::function<std::vector<ops::Expected>(const ops::Inputs&, device::Stream)>;
ExpectThere expect_there(const Problem& problem, const Rung& rung);

// Input from, output to: right to the bit or wrong.
ops::Operation operation(const Problem& problem, const Rung& rung);

// From clearest to fastest (beyond the caches). Names are unique.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::copy
