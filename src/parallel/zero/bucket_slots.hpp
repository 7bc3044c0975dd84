// Where the gradients of a bucket lie before they are scattered, where that is not an arena of all: slots, which
// buckets use in turn.
//
// Gradients that travel rounded have two kinds of slots. One holds a bucket as it travels: pieces that the backward
// pass itself writes rounded are written there, and no kernel more reads or writes them. The other holds the pieces
// that are written in full, one behind the other, until they are rounded into the first.
//
//   as it travels, bf16   [ q·k·v      |norm| w1·w3        ]    one reduce-scatter
//   in full, fp32         [norm]──────round──┘
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor.hpp"
#include "device/buffer.hpp"
#include "parallel/moves.hpp"
#include "parallel/zero/flat_shards.hpp"

namespace syslab::parallel {

// How gradients travel where that is not as they are kept.
struct RoundedGradients {
  DType dtype = DType::bf16;  // or f16
  std::vector<int> written;   // pieces that the backward pass writes in it; ascending. The others are rounded
};

struct BucketSlotOptions {
  int slots = 2;
  std::optional<RoundedGradients> rounded;
  TensorView arena;  // of all gradients in full: what is not written rounded lies there. No memory: in slots as well
};

class BucketSlots {
 public:
  // Memory is taken in the order of `stream`; what is given outlives this. Error(usage) for fewer than one slot, for
  // pieces that there are not and a dtype that is not smaller than theirs.
  BucketSlots(const GradientPieces& pieces, const FlatShards& shards, const BucketSlotOptions& options,
              device::Stream stream);

  int slots() const { return slots_; }  // no more than buckets
  int slot_of(int bucket) const { return bucket % slots_; }
  bool rounds() const { return rounded_.has_value(); }
  bool is_written_rounded(int piece) const;

  // Where the backward pass writes a piece.
  TensorView place(int piece) const;
  // A whole bucket as it travels, padding between its pieces too.
  TensorView bucket(int bucket) const;
  // Rounds what of a bucket was written in full, but for pieces that are unused, queued as `moves` does.
  template <typename IsUnused>
  void round(int bucket, const Moves& moves, const IsUnused& is_unused) const {
    for (int piece = shards_.schedule().begin(bucket); rounds() && piece < shards_.schedule().end(bucket); ++piece) {
      if (!is_written_rounded(piece) && !is_unused(piece)) moves.move(place(piece), in_bucket(piece));
    }
  }
  // Both slots of a bucket are filled with NaNs, in the order of `stream`.
  void spoil(int bucket, device::Stream stream) const;

  std::size_t bytes() const { return travelling_.bytes() + full_.bytes(); }

  // Elements of a slot: of a bucket as it travels, and of what of it is written in full besides.
  struct Room {
    std::int64_t travelling = 0, full = 0;
  };
  static Room room(const GradientPieces& pieces, const FlatShards& shards, const BucketSlotOptions& options);

 private:
  DType travels_in() const { return rounded_ ? rounded_->dtype : pieces_.dtype(); }
  TensorView in_bucket(int piece) const;

  const GradientPieces& pieces_;
  const FlatShards& shards_;
  std::optional<RoundedGradients> rounded_;
  TensorView arena_;
  int slots_;
  Room room_;
  std::vector<std::int64_t> full_at_;  // by piece: where it begins in its slot
  device::Buffer travelling_, full_;
};

}  // namespace syslab::parallel
