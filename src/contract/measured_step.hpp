// A training step as data that the lab can run, check and time, as Operation is for an operator.
//
//   MeasuredStep step = train::measured_step(params, rung, seed);
//   worker::run_step_case(context, worker::step_case_of(step));
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace syslab {

// One comparison with the reference: "logits", "loss", "gradients". It holds while error ≤ tolerance; a NaN does not.
struct StepCheck {
  std::string name;
  double error = 0, tolerance = 0;  // both relative, or in the unit named in the message
  std::string message;              // what was compared with what, and where the worst was
  double fraction = 1;              // share that was compared
};

// The check that a way of training on several ranks ends with the bits of one process.
inline constexpr const char* kCertificate = "certificate";

// Which rung of an operator a step took: "attention", "flash_mma", the row of the dispatch rule.
struct RungTaken {
  std::string operation, rung, because;
};

// A step that is set up and can be repeated. Work is queued on the stream given at set-up.
class StepWorkload {
 public:
  virtual ~StepWorkload() = default;

  virtual void refresh() = 0;  // another batch
  virtual void run() = 0;      // the whole step, up to the phase asked for
  // Its phases, in this order, up to the one asked for.
  virtual void forward() = 0;
  virtual void backward() = 0;
  virtual void update() = 0;
  virtual bool goes_back() const { return true; }

  // The following wait for the last step. With several ranks they are collective.
  virtual double loss() = 0;  // the mean over its rows
  // Why the last step's outcome cannot be right (a loss that is not a number), or nothing.
  virtual std::optional<std::string> what_is_wrong();

  virtual std::size_t graph_nodes() const { return 0; }  // after a step has been recorded as a graph
  virtual std::string why_no_graph() const { return {}; }

  // Which rung each dispatched operator took, and why.
  virtual std::vector<RungTaken> rungs_taken() const { return {}; }

 protected:
  StepWorkload() = default;
  StepWorkload(const StepWorkload&) = default;
  StepWorkload(StepWorkload&&) = default;
  StepWorkload& operator=(const StepWorkload&) = default;
  StepWorkload& operator=(StepWorkload&&) = default;
};

struct MeasuredStep {
  device::Kind device = device::Kind::cpu;
  std::optional<std::string> refusal;  // why it cannot be run here
  // The same rung and precision on a reduced model, against fp64.
  std::function<std::vector<StepCheck>(device::Stream)> check;
  std::function<std::shared_ptr<StepWorkload>(device::Stream)> start;
  bool trains = true;     // with the optimizer
  bool in_phases = true;  // false for a graph
  double flops = 0;       // matrix products of one step
  double tokens = 0;      // of a step
  double parameters = 0;  // of the model
};

// When the phases of a step ended, in seconds from its start.
struct PhaseEnds {
  double forward = 0, backward = 0, update = 0;
};

}  // namespace syslab
