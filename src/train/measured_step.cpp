#include "train/measured_step.hpp"

#include "model/against_reference.hpp"
#include "train/steps_against_reference.hpp"

namespace syslab::train {
namespace {

std::optional<std::string> refusal_of(const Rung& rung, model::Precision precision, Mode mode) {
  if (auto why = refusal(rung, precision)) return why;
  if (rung.variant != model::Variant::graph || mode == Mode::train) return std::nullopt;
  return "the graph is of a whole training step: mode=train";
}

}  // namespace

std::optional<std::string> refusal_by_axes(const Params& params, std::string_view implementation) {
  return refusal_of(find_rung(implementation), model::parse_precision(params.text("precision")),
                    params.has("mode") ? parse_mode(params.text("mode")) : Mode::train);
}

MeasuredStep measured_step(const WorkloadOptions& options, const Rung& rung, std::uint64_t seed) {
  MeasuredStep made;
  made.device = rung.device;
  made.refusal = refusal_of(rung, options.model.precision, options.mode);
  made.check = [options, seed](device::Stream stream) {
    std::vector<StepCheck> all = model::against_reference(options.config, options.model, stream, seed);
    if (options.mode == Mode::train) all.push_back(steps_against_reference(options, stream, seed));
    return all;
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
