// Schemes of activation checkpointing on a stack of N equal blocks that is small enough to count everything: how often
// a block runs forward, how many streams (inputs that a scheme keeps to start again from) and how many residuals (what
// a block's backward pass reads) are alive at once. What a model does with its blocks, model/recompute.hpp.
//
// A scheme runs backward through blocks [first, end) from their saved input. Either it runs all of them forward,
// keeping their residuals, and goes back; or it advances to a block in between, keeps the stream there, first goes
// backward through the blocks from there on, releases that stream and goes backward through the rest:
//
//   scheme      advances by              run forward                 streams        residuals
//   none        (keeps all)              N                           1              N
//   every       1                        2N − 1                      N              1
//   sqrt        k = ⌈√N⌉                 2N − (the last segment)     ⌈N/k⌉          k
//   halving     half of what is left     N + Σ_{j<N} ones(j)         1 + ⌈log₂ N⌉   1
//   binomial    where it costs least     N + r·N − C(s+r, s+1)       s              1
//   left_deep   nothing is kept          N(N + 1)/2                  1              1
//
// (halving: N + N/2·log₂ N for powers of 2.)
//
// The first way to the end is the forward pass itself and is counted. binomial has as many streams s as halving and
// r is the smallest number with C(s+r, s) ≥ N.
//
// Source: Griewank and Walther, "Algorithm 799: revolve", 2000 (binomial); CS336 assignment 2, gradient_checkpointing.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace syslab::model {

enum class Scheme { none, every, sqrt, halving, binomial, left_deep };
inline constexpr std::array kSchemes{Scheme::none,    Scheme::every,    Scheme::sqrt,
                                     Scheme::halving, Scheme::binomial, Scheme::left_deep};

std::string_view to_string(Scheme scheme);
Scheme parse_scheme(std::string_view text);  // Error(usage) with the nearest name

struct SchemeCost {
  std::int64_t forwards = 0;   // of a block
  std::int64_t streams = 0;    // most at once, the input of the stack among them
  std::int64_t residuals = 0;  // most at once
  bool operator==(const SchemeCost&) const = default;
};

// What is alive while a block runs, forward or backward.
struct Held {
  std::int64_t streams = 0, residuals = 0;
};

struct ToyRun {
  SchemeCost cost;                // counted
  std::vector<double> gradients;  // of the stack's input, then of each block's weight
  std::vector<Held> course;       // a block's pass after the other, both ways; empty unless it was asked for
};

inline constexpr std::int64_t kMostToyBlocks = 4096;

void require_toy_blocks(std::int64_t blocks);  // Error(usage) below 1 or above kMostToyBlocks

// Whether the course is kept: 16 bytes a pass of a block, of which the deepest stack has 8 million (left_deep).
enum class ToyCourse { kept, dropped };

// Forward and backward through blocks y = sin(w·x) with weights and an input from `seed`. Error(usage) as
// require_toy_blocks() has it.
ToyRun run_toy_stack(Scheme scheme, std::int64_t blocks, std::uint64_t seed, ToyCourse course = ToyCourse::dropped);

// The table above. Of binomial's streams the limit; it may need fewer.
SchemeCost cost_of(Scheme scheme, std::int64_t blocks);

}  // namespace syslab::model
