#include "trials/measured_data_parallel.hpp"

#include "certify/certificate.hpp"
#include "comm/local/local.hpp"
#include "parallel/model_pieces.hpp"
#include "trials/measured_times.hpp"
#include "trials/rank_training.hpp"

namespace syslab::parallel {
namespace {

Forecast forecast_of(const DataParallelWorkloadOptions& options, comm::Communicator& ranks, model::Transformer& model,
                     device::Stream communication) {
  const GradientPieces pieces = pieces_of(model.parameters());
  const GradientPieces sent = pieces.as(options.sync.wire.value_or(pieces.dtype()));
  const TransferCurve curve = measure_curve(ranks, sent.dtype(), curve_sizes(sent.bytes()), communication);
  ranks.barrier();
  const std::vector<Seconds> ready = agree_on_ready(ranks, measure_ready(model, options.step.batch, options.step.seq));
  return schedule_buckets(sent, ready, curve);
}

// Of new weights as they travel: where products read a copy, flat slices send that.
double weight_bytes_of(const DataParallelWorkloadOptions& options, const model::DTypes& dtypes) {
  if (options.sharding == Sharding::none) return 0;
  const bool copies = options.sharding != Sharding::optimizer && dtypes.weights_copy.has_value();
  double bytes = 0;
  const model::ParameterLayout layout(options.step.config);
  for (const model::ParameterInfo& one : layout.infos()) {
    const DType sent = copies && model::read_by_products(one.kind) ? *dtypes.weights_copy : dtypes.weights;
    bytes += static_cast<double>(one.shape.elements()) * static_cast<double>(size_of(sent));
  }
  return bytes;
}

}  // namespace

device::OwnedStream communication_stream(device::Place place) {
  return place.kind == device::Kind::cpu ? device::OwnedStream::queue() : device::OwnedStream::urgent(place);
}

DataParallelWorkload::DataParallelWorkload(const DataParallelWorkloadOptions& options, comm::Communicator& ranks,
                                           device::Stream compute, std::uint64_t seed)
    : options_(options),
      alone_(comm::make_local(1)),
      communication_(communication_stream(device::place_of(compute))),
      source_({.rows = options.step.batch,
               .context = options.step.seq,
               .vocab = options.step.config.vocab,
               .seed = seed,
               .first_row = ranks.rank() * options.step.batch,
               .all_rows = ranks.size() * options.step.batch}) {
  const bool flat = options.sharding == Sharding::zero1 || options.sharding == Sharding::zero2;
  SyncOptions sync = options.sync;
  model::TransformerOptions model = options.step.model;
  model.with_moments = options.sharding == Sharding::none;
  if (flat) {
    zero_ = std::make_unique<ZeroParameters>(
        ranks, options.step.config, model,
        ZeroModelOptions{.sharding = options.sharding, .sync = sync, .in_turn = options.in_turn}, compute,
        communication_);
    model.source = zero_.get();
  }
  model_.emplace(options.step.config, model, compute);
  if (flat) {
    train::draw_weights(zero_->arena(), model_->kernels(), seed);
  } else {
    train::draw_weights(*model_, seed);
  }
  if (sync.strategy == Strategy::planned && !sync.schedule && options.communicates && ranks.size() > 1) {
    forecast_ = forecast_of(options, ranks, *model_, communication_);
    sync.schedule = forecast_->schedule;
  }
  if (!options.communicates || ranks.size() == 1) sync.strategy = Strategy::flat_view;  // of nothing
  step_.emplace(*model_, options.communicates ? ranks : *alone_[0],
                DataParallelOptions{.optimizer = options.step.optimizer,
                                    .sync = sync,
                                    .sharding = flat ? Sharding::none : options.sharding,
                                    .zero = zero_.get()},
                options.step.batch, options.step.seq, communication_);
}

void DataParallelWorkload::refresh() {
  source_.draw(number_++, drawn_);
  step_->load(0, drawn_.x, drawn_.y);
}

void DataParallelWorkload::run() { step_->run(options_.step.optimizer.adamw.lr); }

void DataParallelWorkload::forward() {
  step_->begin(options_.step.optimizer.adamw.lr);
  step_->forward(0);
}

MeasuredDataParallel measured_data_parallel(const DataParallelWorkloadOptions& options, const train::Rung& rung,
                                            std::uint64_t seed) {
  const MeasuredStep alone = train::measured_step(options.step, rung, seed);
  MeasuredDataParallel made{.device = alone.device, .refusal = alone.refusal};
  if (!made.refusal) made.refusal = refusal_on_ranks(options.step.mode);
  if (!made.refusal) made.refusal = refusal_on_wire(options.sync.wire, options.step.model.precision);
  const bool flat = options.sharding == Sharding::zero1 || options.sharding == Sharding::zero2;
  if (!made.refusal && options.in_turn && !flat) {
    made.refusal = "updates in turn are of zero1 and zero2, whose slices nobody else waits for: take updates=at_end";
  }
  if (!made.refusal && options.sharding != Sharding::none && options.sync.strategy == Strategy::planned) {
    made.refusal = "a schedule is made for all-reduces: a divided state is reduced in buckets of a limited size";
  }
  made.check = [check = alone.check, options, seed](comm::Communicator& ranks, device::Stream compute) {
    const device::OwnedStream communication = communication_stream(device::place_of(compute));
    const std::optional<DType> copy =
        model::dtypes_of(options.step.model.precision, options.step.model.variant).weights_copy;
    const Certified certified = certify(ranks, options.sync, seed, compute, communication,
                                        {.sharding = options.sharding, .copy = copy, .in_turn = options.in_turn});
    std::vector<StepCheck> all = check(compute);
    all.insert(all.begin(), {.name = kCertificate, .message = to_string(certified)});
    return all;
  };
  made.start = [options, seed](comm::Communicator& ranks, device::Stream compute) {
    return std::make_shared<DataParallelWorkload>(options, ranks, compute, seed);
  };
  made.flops = alone.flops;
  made.tokens = alone.tokens;
  made.parameters = alone.parameters;
  const model::DTypes dtypes = model::dtypes_of(options.step.model.precision, options.step.model.variant);
  made.weight_width = static_cast<std::int64_t>(size_of(dtypes.weights));
  made.gradient_bytes = alone.parameters * static_cast<double>(size_of(options.sync.wire.value_or(dtypes.weights)));
  made.weight_bytes = weight_bytes_of(options, dtypes);
  return made;
}

}  // namespace syslab::parallel
