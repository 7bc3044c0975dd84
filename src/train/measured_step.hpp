// A training step as data that a lab can run, check and time: what Operation is to an operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "contract/measured_step.hpp"
#include "core/value.hpp"
#include "train/params.hpp"

namespace syslab::train {

// Why an implementation cannot do a case, by its axes alone (precision, and mode where there is one): what the plan
// says, and MeasuredStep::refusal after it.
std::optional<std::string> refusal_by_axes(const Params& params, std::string_view implementation);

MeasuredStep measured_step(const Params& params, const Rung& rung, std::uint64_t seed);
MeasuredStep measured_step(const WorkloadOptions& options, const Rung& rung, std::uint64_t seed);

}  // namespace syslab::train
