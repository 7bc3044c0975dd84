// The certificate that a strategy is right: a network with exact arithmetic (certify/toy_network.hpp), trained by many
// ranks and by one process on the whole batch, ends with the same bits in every gradient and weight. A wrong scale, a
// missing or duplicated contribution, a stale buffer, a wrong slice, a missing wait: each shows at once, without any
// tolerance.
//
//   certify(ranks, {.strategy = Strategy::bucketed, .bucket_mb = {25}}, seed, compute, communication);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "certify/toy_network.hpp"
#include "comm/communicator.hpp"
#include "parallel/state_memory.hpp"
#include "parallel/strategy.hpp"

namespace syslab::parallel {

// A range of the batch's rows that one rank has, or of the arena's elements.
struct RowBlock {
  std::int64_t first = 0, count = 0;
};
// As even as possible; the first ranks have one more.
std::vector<RowBlock> even_blocks(std::int64_t rows, int ranks);

struct CertificateCase {
  ToyModel model;
  std::uint64_t seed = 1;
  int steps = 3;
  std::int64_t rows = 8;          // of all ranks: a power of two up to 16
  int parts = 1;                  // into which each rank splits its rows
  std::vector<RowBlock> rows_of;  // by rank; empty: even_blocks()
  SyncOptions sync;
  // Which rank updates which weights. Sharding::optimizer: gradients are reduced as `sync` says, and each parameter's
  // owner updates it. zero1, zero2: by the buckets of `sync`; the model's alignment is a multiple of the ranks.
  Sharding sharding = Sharding::none;
  bool groups = false;  // of Sharding::optimizer: two groups with rates of their own, the second added after a step
  int slots = 2;        // of zero2
  // For zero1 and zero2: new weights are sent in this dtype, which represents the network's weights exactly; every
  // second piece also in full.
  std::optional<DType> copy;
  bool in_turn = false;  // of zero1 and zero2: slices are updated under the backward pass
};

// One to three layers, with or without biases, trained or frozen, some with a tied weight, some with a parameter that
// only the first half of the rows use (a rank without such rows declares it unused): drawn among models that stay
// exact.
ToyModel drawn_model(std::uint64_t seed);

struct Trained {
  std::vector<float> weights;                 // including frozen ones
  std::vector<std::vector<float>> gradients;  // the arena, by step
  std::vector<RowBlock> updated;              // elements with gradients that this rank used and compares
  bool inexact = false;                       // something was rounded: the certificate proves nothing
};

// Learning rate; so large that most weights change their grid point, so that a lost update shows.
inline constexpr double kCertificateRate = 2;
// Part `part` of a rank's rows.
RowBlock part_of(const RowBlock& rows, int part, int parts);
// The rows of a step's batch that belong to `own` rows of a rank.
ToyBatch certificate_batch(const CertificateCase& asked, int step, const RowBlock& rows, const RowBlock& own);

Trained train_alone(const CertificateCase& asked);
// This rank's part. Ranks start with different weights, which rank 0's replace. Collective. Error(check) if the counted
// bytes differ from the schedule's.
Trained train_together(const CertificateCase& asked, comm::Communicator& ranks, device::Stream compute,
                       device::Stream communication);

// The first difference, if any: "gradient of 'fc2.weight'[3] in step 1 is 0.25, alone 0.5". Not for bf16 or f16
// communication, which rounds gradients.
std::optional<std::string> difference(const CertificateCase& asked, const Trained& together, const Trained& alone);

// Which rank updates, as in CertificateCase.
struct CertifiedWay {
  Sharding sharding = Sharding::none;
  std::optional<DType> copy;
  bool in_turn = false;
};

// What was trained both ways, and found to be equal.
struct Certified {
  int models = 0, tied = 0, frozen = 0;  // those among them with a tied weight, and with a frozen parameter
  int groups = 0;                        // those whose parameters were in groups
  int steps = 0;
  std::int64_t compared = 0;  // parameters

  void add(const CertificateCase& asked, const Trained& trained);
};
// "4 toy models with exact arithmetic, 2 with tied weights and 3 with frozen parameters, have the bits of one process
// after 3 steps"; groups are named where there are any.
std::string to_string(const Certified& found);

// Trains both ways with a few drawn models, the first of them with a tied weight and a frozen parameter. Collective:
// Error(check) on every rank if any rank found a difference, with what it was. A wire dtype in the options is ignored:
// its rounding is not part of the strategy. A schedule is replaced by one for the certificate's own model.
Certified certify(comm::Communicator& ranks, SyncOptions options, std::uint64_t seed, device::Stream compute,
                  device::Stream communication, const CertifiedWay& way = {});

}  // namespace syslab::parallel
