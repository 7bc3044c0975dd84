#include "model/recompute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "model/transformer.hpp"

namespace syslab::model {

Recompute segments_of(double blocks) {
  constexpr double kMost = 1 << 20;
  const double halves = 2 * blocks;
  if (!(halves >= 0 && halves <= kMost && halves == std::floor(halves))) {
    throw Error(ErrorKind::usage,
                fmt::format("segments of {} blocks: whole or half numbers are wanted, from 0.5 on (or "
                            "0, for no recomputation)",
                            blocks));
  }
  return {static_cast<std::int64_t>(halves)};
}

std::string to_string(Recompute recompute) {
  if (recompute.half_blocks == 0) return "all activations kept";
  return fmt::format("segments of {} blocks", static_cast<double>(recompute.half_blocks) / 2);
}

Segment segment_of(Recompute recompute, std::int64_t layers, std::int64_t half) {
  const std::int64_t halves = 2 * layers, size = recompute.half_blocks == 0 ? halves : recompute.half_blocks;
  const std::int64_t first = half / size * size;
  return {first, std::min(first + size, halves)};
}

Kept kept_of(Recompute recompute, std::int64_t layers, std::int64_t half) {
  const Segment segment = segment_of(recompute, layers, half);
  if (segment.end == 2 * layers) return Kept::everything;
  return half == segment.first ? Kept::stream : Kept::nothing;
}

std::int64_t half_blocks_forward(Recompute recompute, std::int64_t layers) {
  const std::int64_t halves = 2 * layers;
  return halves + (halves - segment_of(recompute, layers, halves - 1).size());
}

// Runs a segment forward again, from the stream where it begins, to make everything that its backward pass reads.
void Transformer::recompute(const PassContext& pass, Segment segment, std::vector<Activations::Block>& blocks) const {
  ResidualStream stream;
  stream.begins = std::move(norm_of(blocks, segment.first).residual);
  for (std::int64_t half = segment.first; half < segment.end; ++half) {
    forward_half(pass, half, stream, blocks, half + 1 < segment.end ? Output::wanted : Output::unwanted);
  }
}

}  // namespace syslab::model
