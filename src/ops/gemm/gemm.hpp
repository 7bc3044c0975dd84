// Matrix products C = A·B: the ceiling of every kernel that multiplies, attention and the model's layers alike.
//
//   C (m×n) = A (m×k) · B (k×n), row-major         2·m·n·k operations, (m·k + k·n + m·n) elements once each
//
// At n = m = k a product has n/6 operations a byte in fp32: from a few hundred on it is compute-bound on any machine.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::gemm {

struct Problem {
  std::int64_t m = 1, n = 1, k = 1;
  DType dtype = DType::f32;  // of A, B and C; sums are accumulated in fp32 (fp64 for fp64)

  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

double flops(const Problem& problem);  // a multiplication and an addition are two
double bytes(const Problem& problem);  // A and B read once, C written once

// Any row stride, elements of a row adjacent; c overlaps nothing.
//   a  (m, k)      b  (k, n)      c  (m, n)          all of problem.dtype
struct Args {
  ConstTensorView a, b;
  TensorView c;
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const Args& args);

struct Rung : RungInfo {
  // Why this rung cannot take the problem; nothing if it can.
  std::function<std::optional<std::string>(const Problem&)> supports;
  // Preconditions: validate() passed, supports() returned nothing. On the CPU the work is done on return.
  std::function<void(const Problem&, const Args&, ops::Workspace, device::Stream)> run;
  std::function<std::size_t(const Problem&)> workspace_bytes;
  // Largest relative error of rounding A and B before they are multiplied; 0: not rounded.
  double operand_unit = 0;
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::gemm
