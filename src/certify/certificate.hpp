// The certificate that a strategy is right: a network whose numbers are all exact (certify/toy_network.hpp), trained
// by many ranks and by one process on the whole batch, ends with the same bits, gradient by gradient and weight by
// weight. A wrong scale, a contribution that is missing or counted twice, a stale buffer, a wrong slice, a wait too
// few: each shows at once, and no tolerance has to be argued about.
//
//   certify(ranks, {.strategy = Strategy::bucketed, .bucket_mb = {25}}, seed, compute, communication);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "certify/toy_network.hpp"
#include "comm/communicator.hpp"
#include "parallel/state_memory.hpp"
#include "parallel/strategy.hpp"

namespace syslab::parallel {

// Rows of the whole batch that one rank has; elements of the arena.
struct RowBlock {
  std::int64_t first = 0, count = 0;
};
// As even as can be, the first ranks with one more.
std::vector<RowBlock> even_blocks(std::int64_t rows, int ranks);

struct CertificateCase {
  ToyModel model;
  std::uint64_t seed = 1;
  int steps = 3;
  std::int64_t rows = 8;          // of all ranks: a power of two up to 16
  int parts = 1;                  // in which each rank takes its rows
  std::vector<RowBlock> rows_of;  // by rank; empty: even_blocks()
  SyncOptions sync;
  // Who updates what. Sharding::optimizer: gradients are reduced as `sync` says, and each parameter's owner updates it.
  // zero1, zero2: in the buckets that `sync` makes; the model's alignment is a multiple of the ranks.
  Sharding sharding = Sharding::none;
  int slots = 2;  // of zero2
  // Of zero1 and zero2: new weights travel rounded to this dtype, which rounds none of the network's; every second
  // piece in full as well.
  std::optional<DType> copy;
  bool in_turn = false;  // of zero1 and zero2: slices are updated under the backward pass
  // As SyncOptions::left_out_wait: of the weights' way from their owners; of zero1 and zero2, ZeroSync's.
  int left_out_sharded_wait = -1;
};

// One to three layers, with biases or without, trained or frozen, some with a tied weight, some with a parameter that
// only the first half of the rows use (a rank that has none of them declares it unused): drawn among what stays exact.
ToyModel drawn_model(std::uint64_t seed);

struct Trained {
  std::vector<float> weights;                 // also the frozen ones
  std::vector<std::vector<float>> gradients;  // the arena, by step
  std::vector<RowBlock> updated;              // elements of it whose gradients this rank used: those it compares
  bool inexact = false;                       // something was rounded: then nothing is proved
};

// For tests: what happens around a step while it is queued.
struct Interference {
  std::function<void(device::Stream)> before_work;  // called before work is queued on either stream
  std::function<void(int layer, int piece, std::span<double> gradient)> contribution;  // ToyNetwork::Watching's
  double scale = 1;                                                                    // of the loss
};

// Of the descent; so large that most weights leave their place on the grid: what does not arrive then shows.
inline constexpr double kCertificateRate = 2;
// Part `part` of a rank's rows.
RowBlock part_of(const RowBlock& rows, int part, int parts);
// Rows of a step's batch, which belong to `own` rows of a rank.
ToyBatch certificate_batch(const CertificateCase& asked, int step, const RowBlock& rows, const RowBlock& own);

Trained train_alone(const CertificateCase& asked);
// This rank's part. Ranks begin with weights of their own, which rank 0's replace. Collective. Error(check) when the
// bytes that were counted are not the schedule's.
Trained train_together(const CertificateCase& asked, comm::Communicator& ranks, device::Stream compute,
                       device::Stream communication, const Interference& interference = {});

// Nothing, or where the first bit differs: "gradient of 'fc2.weight'[3] in step 1 is 0.25, alone 0.5". With bf16 or f16
// on the wire gradients are rounded, so that only weights that all ranks share can be asked for: not for this.
std::optional<std::string> difference(const CertificateCase& asked, const Trained& together, const Trained& alone);

// Whose the update is, as CertificateCase's.
struct CertifiedWay {
  Sharding sharding = Sharding::none;
  std::optional<DType> copy;
  bool in_turn = false;
};

// Trains both ways with a few drawn models. Collective: Error(check) on every rank if any rank found a difference, with
// what it was. Options with a wire dtype are certified without it: what it rounds is not the strategy's. A schedule is
// replaced by one of the certificate's own model. Returns how many parameters were compared.
std::int64_t certify(comm::Communicator& ranks, SyncOptions options, std::uint64_t seed, device::Stream compute,
                     device::Stream communication, const CertifiedWay& way = {});

}  // namespace syslab::parallel
