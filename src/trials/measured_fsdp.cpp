#include "trials/measured_fsdp.hpp"

#include "certify/fsdp_certificate.hpp"
#include "train/recomputed_against_kept.hpp"
#include "trials/measured_data_parallel.hpp"
#include "trials/rank_training.hpp"

namespace syslab::parallel {
namespace {

FsdpStepOptions sharding_of(const FsdpWorkloadOptions& options) {
  FsdpStepOptions made = options.sharding;
  made.optimizer = options.step.optimizer;
  return made;
}

}  // namespace

FsdpWorkload::FsdpWorkload(const FsdpWorkloadOptions& options, comm::Communicator& ranks, device::Stream compute,
                           std::uint64_t seed)
    : options_(options),
      communication_(communication_stream(device::place_of(compute))),
      step_(options.step.config, options.step.model, ranks, sharding_of(options), options.step.batch, options.step.seq,
            compute, communication_),
      source_({.rows = options.step.batch,
               .context = options.step.seq,
               .vocab = options.step.config.vocab,
               .seed = seed,
               .first_row = ranks.rank() * options.step.batch,
               .all_rows = ranks.size() * options.step.batch}) {
  step_.draw_weights(seed);
}

std::string FsdpWorkload::unit_name(int unit) const {
  const FsdpParts& parts = step_.fsdp().parts();
  // A unit's brackets stand as their gradients become final: the first to be read is the last.
  const int bracket = parts.units[static_cast<std::size_t>(unit)].back();
  const int matrix = parts.brackets[static_cast<std::size_t>(bracket)].matrices.front();
  return parts.matrices[static_cast<std::size_t>(matrix)].name;
}

void FsdpWorkload::refresh() {
  source_.draw(number_++, drawn_);
  step_.load(0, drawn_.x, drawn_.y);
}

void FsdpWorkload::run() { step_.run(options_.step.optimizer.adamw.lr); }

void FsdpWorkload::forward() {
  step_.begin(options_.step.optimizer.adamw.lr);
  step_.forward(0);
}

MeasuredFsdp measured_fsdp(const FsdpWorkloadOptions& options, const train::Rung& rung, std::uint64_t seed) {
  const MeasuredStep alone = train::measured_step(options.step, rung, seed);
  MeasuredFsdp made{.device = alone.device, .refusal = alone.refusal};
  if (!made.refusal) made.refusal = refusal_on_ranks(options.step.mode);
  if (!made.refusal) made.refusal = refusal_on_wire(options.sharding.fsdp.scatter.wire, options.step.model.precision);
  made.check = [check = alone.check, options, seed](comm::Communicator& ranks, device::Stream compute) {
    const device::OwnedStream communication = communication_stream(device::place_of(compute));
    const Certified certified = certify_sharded(ranks, options.sharding.fsdp, seed, compute, communication);
    std::vector<StepCheck> all = check(compute);
    all.insert(all.begin(), {.name = kCertificate, .message = to_string(certified)});
    if (options.step.model.recompute.half_blocks > 0) {
      all.push_back(train::recomputed_against_kept(options.step, compute, seed));
    }
    return all;
  };
  made.start = [options, seed](comm::Communicator& ranks, device::Stream compute) {
    return std::make_shared<FsdpWorkload>(options, ranks, compute, seed);
  };
  made.tokens = alone.tokens;
  made.parameters = alone.parameters;
  made.weight_width = static_cast<std::int64_t>(
      size_of(model::dtypes_of(options.step.model.precision, options.step.model.variant).weights));
  return made;
}

}  // namespace syslab::parallel
