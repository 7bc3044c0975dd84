// Closed formulas for the overhead of bucketed data parallelism where all gradients are alike: what the hand-out's
// ddp_bucketed_benchmarking asks for, and what they become when computing is faster or slower than sending.
//
//   s bytes of gradients in buckets of b, T(b) = o + b/w, a backward pass that takes g seconds for the gradient of a
//   byte exposed(b) = o + b/w + max(0, (s/b − 1) · (o + b/w − b·g))
//
// With g·w = 1, the hand-out's case, that is s·o/b + b/w, least at b = √(s·w·o), where it is 2·√(s·o/w). The formulas
// take s/b for a number of buckets that need not be whole; planning/planner.hpp knows real tensors.
#pragma once

#include "core/text/units.hpp"
#include "planning/transfer_curve.hpp"

namespace syslab::parallel {

struct UniformStep {
  double bytes = 0;             // s, of all gradients
  AffineTransfer transfer;      // o and w
  double seconds_per_byte = 0;  // g, of the backward pass
};

// Of buckets of so many bytes, 0 < bucket ≤ s: how much later than the backward pass communication ends.
Seconds exposed(const UniformStep& step, double bucket_bytes);

// The bucket size that exposes least, at most s; 0 where there is no overhead: the smaller the better.
//   g·w < 1: √(s·o/g): the first bucket's delay and one overhead a bucket are what costs
//   g·w = 1: √(s·w·o)
//   g·w > 1: o·w/(g·w − 1), the smallest with which sending keeps pace, unless √(s·o/g) is smaller still
double best_bucket_bytes(const UniformStep& step);

}  // namespace syslab::parallel
