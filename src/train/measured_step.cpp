#include "train/measured_step.hpp"

namespace syslab::train {

MeasuredStep measured_step(const WorkloadOptions& options, const Rung& rung, std::uint64_t seed) {
  MeasuredStep made;
  made.device = rung.device;
  made.refusal = refusal(rung, options.model.precision);
  made.check = [options, seed](device::Stream stream) {
    return model::against_reference(options.config, options.model, stream, seed);
  };
  made.start = [options, seed](device::Stream stream) { return std::make_shared<Workload>(options, stream, seed); };
  made.trains = options.mode == Mode::train;
  made.in_phases = options.model.variant != model::Variant::graph;
  made.flops = flops(options);
  made.tokens = static_cast<double>(options.batch * options.seq);
  made.parameters = static_cast<double>(model::parameter_count(options.config));
  return made;
}

MeasuredStep measured_step(const Params& params, const Rung& rung, std::uint64_t seed) {
  return measured_step(workload_from(params, rung), rung, seed);
}

}  // namespace syslab::train
