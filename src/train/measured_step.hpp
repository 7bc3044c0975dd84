// A training step as data that a lab can run, check and time: what ops::Operation is to an operator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value.hpp"
#include "model/against_reference.hpp"
#include "train/params.hpp"

namespace syslab::train {

struct MeasuredStep {
  device::Kind device = device::Kind::cpu;
  std::optional<std::string> refusal;  // why it cannot be run here
  // The same rung and precision on a reduced model, against fp64.
  std::function<std::vector<model::Distance>(device::Stream)> check;
  std::function<std::shared_ptr<Workload>(device::Stream)> start;
  bool trains = true;     // with the optimizer
  bool in_phases = true;  // a graph has none
  double flops = 0, tokens = 0, parameters = 0;
};

// Why an implementation cannot do a case, by its axes alone (precision, and mode where there is one): what the plan
// says, and MeasuredStep::refusal after it.
std::optional<std::string> refusal_by_axes(const Params& params, std::string_view implementation);

MeasuredStep measured_step(const Params& params, const Rung& rung, std::uint64_t seed);
MeasuredStep measured_step(const WorkloadOptions& options, const Rung& rung, std::uint64_t seed);

}  // namespace syslab::train
