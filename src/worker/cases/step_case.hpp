// The journey of a case that is a training step: built once, checked against a reference, then run with a new batch at
// every step and timed, whole and by its phases.
//
// An experiment fills a StepCase and calls run_step_case(); it writes no loop of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contract/measured_step.hpp"
#include "device/device.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::worker {

struct StepPhase {
  std::string name;             // "forward"
  std::function<void()> queue;  // its work, in the stream's order
};

// A step that is set up on a stream and can be run again and again.
struct RunningStep {
  std::function<void()> refresh;  // a new batch; outside what is timed; may be empty
  std::function<void()> step;     // the whole, queued
  // The same in parts, to be queued one after the other. Empty: it cannot be parted (a graph).
  std::vector<StepPhase> phases;
  // After the stream has been waited for: throws CheckFailed when the last step's outcome cannot be right (a loss that
  // is no number). May be empty.
  std::function<void()> verify;
  // More metrics of what has run; may be empty.
  std::function<void(CaseContext&)> tell;
  std::shared_ptr<void> owner;  // of what the functions use
};

struct StepCase {
  device::Kind device = device::Kind::cpu;
  // Comparisons with the float64 reference, before anything is timed.
  std::function<std::vector<StepCheck>(device::Stream)> check;
  std::function<RunningStep(device::Stream)> start;
  double flops = 0;   // of matrix products in a step; 0: no rate is sent
  double tokens = 0;  // of a step
  // Steps before the first timed one; nothing: the protocol's number.
  std::optional<int> warmup;
  // Comparisons after the measurement instead of before: if the question is about the first steps, a check before them
  // would warm up libraries and kernels. Not in task `paired`.
  bool check_last = false;
};

// The step with metrics "parameters", "loss" and, of a graph, "graph_nodes". `workload` is one that `step` started.
RunningStep running_step_of(const std::shared_ptr<StepWorkload>& workload, const MeasuredStep& step);
// Unsupported with the reason where the step cannot be run here.
StepCase step_case_of(const MeasuredStep& step);

// Emits a check record "reference:<name>" for each. Throws CheckFailed with the first that is off by too much.
void emit_checks(CaseContext& context, const std::vector<StepCheck>& checks);

// Emits check records "reference:<name>", samples and metrics "time" (as an operator's), "<phase>" and, where the
// device tells, the memory that a step takes; facts. Throws CheckFailed, Unsupported, Error.
void run_step_case(CaseContext& context, const StepCase& step_case);

}  // namespace syslab::worker
