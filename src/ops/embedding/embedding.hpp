// Embedding: a row of a table for each token, and the table's gradient.
//
//   x_i = table[id_i]                dtable[v] = Σ over i with id_i = v, in the order of i, of dx_i
//
// A token that occurs a thousand times gives a sum of a thousand rows. Sums are accumulated in fp32 (fp64 for fp64) in
// an order that depends only on the ids, never on thread timing: equal inputs give equal bits.
//
// For an id outside [0, vocab), x_i becomes NaN, dx_i is ignored, and nothing outside the table is accessed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "contract/pass.hpp"
#include "core/tensor.hpp"
#include "ops/expect_tensor.hpp"
#include "ops/rung.hpp"

namespace syslab::embedding {

struct Problem {
  std::int64_t rows = 1;  // tokens
  std::int64_t vocab = 1, dim = 1;
  DType table_dtype = DType::f32;
  DType x_dtype = DType::f32;  // of x and dx: the table's dtype, or half precision with an fp32 table

  DType gradient() const { return ops::statistics_dtype(table_dtype); }  // of dtable: fp32, fp64 for fp64
  bool operator==(const Problem&) const = default;
};

std::string to_string(const Problem& problem);

// Each input read once, each output written once. Forward reads as many table rows as tokens drawn alike
// name; backward writes the whole
// table, and reads it first if it accumulates.
double forward_bytes(const Problem& problem);
double backward_bytes(const Problem& problem, bool accumulate = false);

// Matrices have any row stride, elements of a row adjacent. Ids are in the memory of the stream's device. Outputs
// overlap nothing.
struct ForwardArgs {
  const std::int64_t* ids = nullptr;  // (rows)
  ConstTensorView table;              // (vocab, dim)
  TensorView x;                       // (rows, dim)
};

struct BackwardArgs {
  const std::int64_t* ids = nullptr;
  ConstTensorView dx;       // (rows, dim)
  TensorView dtable;        // (vocab, dim); every row is written, with zeros for unused ids
  bool accumulate = false;  // dtable += instead; rows of unused ids stay
};

// Throws Error(usage) with the field or tensor, its value and the required value.
void validate(const Problem& problem);
void validate(const Problem& problem, const ForwardArgs& args);
void validate(const Problem& problem, const BackwardArgs& args);

struct Rung : RungInfo {
  // Why this rung cannot take the problem; nothing if it can.
  std::function<std::optional<std::string>(const Problem&)> supports;
  std::function<std::size_t(const Problem&, Pass)> workspace_bytes;
  // Preconditions: validate() passed, supports() returned nothing, the workspace has the required size. Work is queued
  // on the stream without waiting or allocating. On the CPU the work is done on return.
  std::function<void(const Problem&, const ForwardArgs&, ops::Workspace, device::Stream)> forward;
  std::function<void(const Problem&, const BackwardArgs&, ops::Workspace, device::Stream)> backward;
};

// From clearest to fastest. Names are unique. The reference takes fp64.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);

}  // namespace syslab::embedding
