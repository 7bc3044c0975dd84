// A small tiled attention with switches that plant faults in it: the laws are tested by whether they find them.
//
// It is written to be read, not to be fast, and shares no code with the ladder: a fault there cannot hide here.
#pragma once

#include <string>
#include <vector>

#include "ops/attention/attention.hpp"

namespace syslab::attention {

enum class Fault {
  none,
  mask_off_by_one,     // a row sees one key too many
  missing_rescale,     // the accumulator is not scaled when the running maximum grows
  unmasked_tail,       // zero padding beyond the last key takes part in the softmax
  wrong_scale,         // 1/D instead of 1/√D (and scale² for a scale that is given)
  swapped_gradients,   // dK into dV's memory and the other way round
  stale_lse,           // L is from before the last tile of keys
  write_past_end,      // one element after the last of `out`
  forgotten_row,       // the last row of a ragged tile of queries is not stored
  half_accumulator,    // the accumulator is rounded to the tensors' dtype after every tile
  binary_logarithm,    // L in base 2
  no_running_maximum,  // exp of the score as it is
  shared_batch,        // every batch entry reads the keys of the first
  interleaved_heads,   // query head h reads key head h mod heads_kv instead of h / (heads_q / heads_kv)
  unordered_tiles,     // tiles of keys in another order at every call
  dropped_row_term,    // dS = P∘dP without −D
  divided_by_nothing,  // a row that sees no key is 0/0
  lost_group,          // dK and dV from one of the query heads that share a key head
  nudged_scale,        // gradients of queries and keys are 0.1 % too large: less than a rounding step of bf16
  nudged_row_term,     // dS = P∘(dP − 1.01·D)
  narrow_products,     // inputs of products cut to ten bits of mantissa, as TF32: no fault by the hand-out
  half_gradient_sums,  // dQ is rounded to the tensors' dtype after every tile of keys
  rounded_weights,     // P̃ and dS rounded to the tensors' dtype before they enter a product: no fault
  kept_output,         // the last answer once more where the same memory and shape are asked
  kept_forward,        // the backward pass reads L of the last forward pass, whichever that was
  kept_mask,           // the backward pass masks as the last forward pass did, whichever that was
  rare_slip,           // in one call of fifty the last row is off by one
  spread_rows,         // rows of a tile share one maximum: a query of 1e4 leaves the others without weights
  strides_of_keys,     // V is read by the strides of K, where that stays inside of V
  small_values,        // a V without a number above 1e-3 is taken for zeros
  small_gradients,     // a dO without a number above 1e-3 is taken for zeros
  refused_tail,        // throws where the keys end inside a tile, though `supports` said nothing
};

struct Mutant {
  Fault fault = Fault::none;
  std::string name;       // "mask_off_by_one"
  std::string caught_by;  // the law that must find it: "attention.causal_prefix"
};

std::vector<Mutant> mutants();
Rung tiled_with(Fault fault);  // Fault::none: the sound twin

}  // namespace syslab::attention
