// Dynamic loss scaling for fp16, where gradients below 6e-8 vanish: the loss is multiplied by a scale before backward,
// and gradients are divided by it before they are used. If gradients overflow, the step is skipped and the scale falls;
// after many steps without overflow it rises again. The rule and its numbers are those of PyTorch's GradScaler.
//
//   upload scale() for this step's backward · backward · count non-finite gradients · optimizer, which skips if any
//   scaler.update(count_read_from_the_device != 0);
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace syslab::train {

struct LossScalerOptions {
  float initial_scale = 65536.0F;
  float growth_factor = 2.0F, backoff_factor = 0.5F;
  std::int64_t growth_interval = 2000;  // steps in a row without an overflow after which the scale grows
};

// State on the host; the number that decides is on the device and is read once a step. Powers of two, so that scaling
// and unscaling round nothing.
class LossScaler {
 public:
  struct State {  // what a checkpoint keeps
    float scale = 65536.0F;
    std::int64_t clean_steps = 0;  // in a row, since the scale last changed
    bool operator==(const State&) const = default;
  };

  explicit LossScaler(const LossScalerOptions& options = {}) : options_(options), state_{options.initial_scale, 0} {}
  LossScaler(const LossScalerOptions& options, const State& state) : options_(options), state_(state) {}

  float scale() const { return state_.scale; }
  const State& state() const { return state_; }

  // After each step. Returns whether the step was taken.
  bool update(bool found_non_finite) {
    if (found_non_finite) {
      // Not below what fp32 holds in full: from 0 a scale never comes back.
      state_.scale = std::fmax(state_.scale * options_.backoff_factor, std::numeric_limits<float>::min());
      state_.clean_steps = 0;
      return false;
    }
    if (++state_.clean_steps >= options_.growth_interval) {
      const float grown = state_.scale * options_.growth_factor;
      if (std::isfinite(grown)) state_.scale = grown;
      state_.clean_steps = 0;
    }
    return true;
  }

 private:
  LossScalerOptions options_;
  State state_;
};

}  // namespace syslab::train
