// Activation checkpointing: a forward pass keeps only the residual stream at the beginning of each segment, and the
// backward pass recomputes the segment before it runs backward through it.
//
//   half-block  0    1  |  2    3  |  4    5  |  6    7        segments of one block, L = 4
//   kept       h₀    ·  |  h₂   ·  |  h₄   ·  |  a₆   a₇       h: the stream at a norm    a: all activations
//   later      h₀    ·  |  h₂   ·  |  a₄   a₅ |                made again from h₄, as the backward pass comes to it
//
// A half-block is a norm and the layer after it: 2·b is attention of block b, 2·b + 1 its feed-forward. Segments are of
// k half-blocks, counted from the first; the last one, which may be shorter, is kept whole, for the backward pass
// begins with it. With R bytes of activations and c of the stream in a segment of k of n half-blocks, n/k whole:
//
//   held at once   R + (n/k − 1)·c            run forward   n + (n − k)
//
// The same kernels run on the same numbers in the same order, so that gradients have the bits of those without. The
// last product of a segment is not run again: what it gave was added to the next one's h.
//
// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016; CS336 assignment 2,
// gradient_checkpointing.
#pragma once

#include <cstdint>
#include <string>

namespace syslab::model {

struct Recompute {
  std::int64_t half_blocks = 0;  // of a segment; 0: all activations are kept

  bool operator==(const Recompute&) const = default;
};

// Segments of 1, 2, … blocks, or of ½, 1½, …; 0: none. Error(usage) for any other number.
Recompute segments_of(double blocks);
std::string to_string(Recompute recompute);  // "all activations kept", "segments of 0.5 blocks"

// Half-blocks [first, end).
struct Segment {
  std::int64_t first = 0, end = 0;

  std::int64_t size() const { return end - first; }
  bool operator==(const Segment&) const = default;
};

// The segment in which a half-block of a model of `layers` blocks lies.
Segment segment_of(Recompute recompute, std::int64_t layers, std::int64_t half);

// How much of a half-block a forward pass that a backward pass will follow leaves.
enum class Kept { everything, stream, nothing };
Kept kept_of(Recompute recompute, std::int64_t layers, std::int64_t half);

// Number of half-blocks that a forward and a backward pass together run forward.
std::int64_t half_blocks_forward(Recompute recompute, std::int64_t layers);

}  // namespace syslab::model
