#include "parallel/rank_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "parallel/zero/parameter_owners.hpp"
#include "parallel/zero/parameters.hpp"
#include "train/params.hpp"

namespace syslab::parallel {
namespace {

double bytes_as(std::int64_t elements, DType dtype) {
  return static_cast<double>(elements) * static_cast<double>(size_of(dtype));
}

model::DTypes dtypes_of_step(const train::WorkloadOptions& options) {
  return dtypes_of(options.model.precision, options.model.variant);
}

void expect_ranks(int ranks) {
  if (ranks < 1) throw Error(ErrorKind::usage, fmt::format("{} ranks; at least 1 is wanted", ranks));
}

// What a step holds besides its state.
double beside_state(const train::WorkloadOptions& options) {
  const train::StepBytes parts = train::predicted_parts(options);
  return parts.kept + parts.head;
}

double wire_bytes(const SyncOptions& sync, std::int64_t elements, DType lies) {
  const DType sent = sync.wire.value_or(lies);
  return sent != lies || info_of(sync.strategy).copies ? bytes_as(elements, sent) : 0;
}

// Of the rank that owns the most, in whole parameters.
std::int64_t most_owned(const model::ParameterLayout& layout, int ranks) {
  std::vector<std::int64_t> elements, loads(static_cast<std::size_t>(ranks), 0);
  for (const int index : layout.arena_order()) elements.push_back(layout.info(index).shape.elements());
  static_cast<void>(assign_owners(elements, loads));
  return *std::ranges::max_element(loads);
}

// For gradients that are scattered from slots.
void add_slots(RankMemory& memory, const model::ParameterLayout& layout, const model::DTypes& dtypes,
               const ZeroModelOptions& options, int ranks) {
  const bool has_arena = options.sharding == Sharding::zero1;
  if (!has_arena) memory.gradients /= ranks;
  const BucketSlotOptions slots{
      .slots = options.slots, .rounded = rounded_gradients(layout, dtypes, options, ranks), .arena = {}};
  if (has_arena && !slots.rounded) return;
  const GradientPieces pieces = bracket_pieces(layout, dtypes.weights);
  const DType wire = slots.rounded ? slots.rounded->dtype : dtypes.weights;
  const FlatShards shards(pieces, schedule_of(options.sync, pieces.as(wire)), layout.elements(), ranks);
  const int count = std::min(slots.slots, shards.buckets());
  const BucketSlots::Room room = BucketSlots::room(pieces, shards, slots);
  memory.slots = bytes_as(count * room.travelling, wire);
  if (!has_arena) memory.slots += bytes_as(count * room.full, dtypes.weights);
}

}  // namespace

RankMemory data_parallel_memory(const train::WorkloadOptions& of_rank, int ranks, Sharding sharding,
                                const SyncOptions& sync) {
  expect_ranks(ranks);
  if (sharding == Sharding::zero3) throw Error(ErrorKind::usage, "the memory of zero3 is fsdp_memory()'s");
  const model::DTypes dtypes = dtypes_of_step(of_rank);
  const bool flat = sharding == Sharding::zero1 || sharding == Sharding::zero2;
  const model::ParameterLayout layout(of_rank.config, model::kAlignedElements * (flat ? ranks : 1));
  const std::int64_t all = layout.elements();
  RankMemory made{.weights = bytes_as(all, dtypes.weights),
                  .gradients = bytes_as(all, dtypes.weights),
                  .moments = 2 * bytes_as(all, dtypes.weights),
                  .activations = beside_state(of_rank)};
  model::TransformerOptions needed = train::needed(of_rank);
  needed.with_moments = sharding == Sharding::none;
  if (dtypes.weights_copy && !model::splits_weights(needed)) made.copy = bytes_as(all, *dtypes.weights_copy);
  if (!flat && ranks > 1) made.wire = wire_bytes(sync, all, dtypes.weights);
  if (sharding == Sharding::optimizer) made.moments = 2 * bytes_as(most_owned(layout, ranks), dtypes.weights);
  if (flat) made.moments /= ranks;
  if (flat) add_slots(made, layout, dtypes, {.sharding = sharding, .sync = sync}, ranks);
  return made;
}

RankMemory fsdp_memory(const train::WorkloadOptions& of_rank, int ranks, const FsdpStepOptions& options) {
  expect_ranks(ranks);
  const FsdpParts parts = parts_of(model::ParameterLayout(of_rank.config), dtypes_of_step(of_rank),
                                   of_rank.model.recompute, options.granularity)
                              .parts;
  const ShardLayout layout(parts, ranks);
  const double plane = bytes_as(layout.elements(), parts.dtype);
  return {.weights = plane,
          .copy = 0,
          .gradients = plane,
          .moments = 2 * plane,
          .slots = static_cast<double>(GatheredWeights::pool_bytes(parts, layout, options.fsdp.gather) +
                                       ScatteredGradients::pool_bytes(parts, layout, options.fsdp.scatter)),
          .activations = beside_state(of_rank)};
}

}  // namespace syslab::parallel
