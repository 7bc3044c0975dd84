// The ways to run a training step, as a ladder: what experiments on the model compare.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/precision.hpp"
#include "ops/rung.hpp"

namespace syslab::train {

struct Rung : RungInfo {
  model::Variant variant = model::Variant::fused;
};

// From clearest to fastest. Names are unique.
std::span<const Rung> ladder();
// Error(usage) with the nearest names if there is none.
const Rung& find_rung(std::string_view name);
// Why a rung cannot run a precision; nothing when it can.
std::optional<std::string> refusal(const Rung& rung, model::Precision precision);

}  // namespace syslab::train
