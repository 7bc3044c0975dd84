// An operation made ready to be timed: inputs from the seed, the first call checked against the float64 oracle, and a
// subject whose every timed call is looked at. Every user (the sampler of a run, the bursts of a comparison) gets only
// checked results.
//
// What is looked for in the outputs of a timed call: elements that were not written, always; of somebody else's
// implementation, rows far from what a trusted computation finds for that call's inputs (Operation::glimpse), always;
// and of calls drawn at random after they were timed every element, by the oracle, as far as a share of the time
// allows.
//
//   CheckedOperator checked(context, operation, protocol, device, chance);
//   checked.check();                                    // throws CheckFailed: no time of a wrong kernel exists
//   … time checked.subject() …
//   checked.emit_verified("samples", samples.verified, samples.seconds.size());
//   checked.emit_metrics();
#pragma once

#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "check/compare.hpp"
#include "core/text/json.hpp"
#include "device/cuda/kernel_watch.hpp"
#include "measure/cache_plan.hpp"
#include "measure/device.hpp"
#include "measure/floor.hpp"
#include "measure/protocol.hpp"
#include "measure/subject.hpp"
#include "worker/cases/glance.hpp"
#include "worker/cases/input_sets.hpp"

namespace syslab::worker {

class CheckedOperator {
 public:
  // Everything is borrowed and must outlive this. `stream` is of the operation's device, and the one that `device`
  // times. `chance` chooses the elements that are looked at.
  CheckedOperator(CaseContext& context, const Operation& operation, const measure::Protocol& protocol,
                  const measure::Device& device, std::uint64_t chance, device::Stream stream = {});

  // Calls once and compares. Emits "reference:<output>" and, in half precision, "naive:<output>". Throws CheckFailed,
  // and Unsupported where a quarter of an output's elements or more pass only by what neighbours and jumps allow them.
  void check();
  // With as many input sets as the protocol's cache state needs. Valid while this lives; verifying throws as check()
  // does.
  measure::Subject subject();
  // Another series is timed: its first candidate call is verified, however slow the oracle is.
  void begin_series();
  // After timing, of the last series: records "<series>:<output>" ("samples:out").
  void emit_verified(const std::string& series);
  // Errors and memory as metrics.
  void emit_metrics();
  std::int64_t timed_calls() const { return looked_at_; }  // of this series
  // How inputs and caches were: input_sets, rotated_bytes, cache, …
  Json facts() const;
  // The shortest time that a call can take, if one is known: "floor"; and "suspect" if `seconds` is below it.
  Json floor_facts(const measure::Peaks& peaks, double seconds) const;
  // The narrowest of the tensors: what the device is fastest with.
  DType narrowest() const;

 private:
  // Worst outcome of one output over everything that was compared.
  struct Worst {
    double error = 0, tolerance = 0, ratio = -1;
    double fraction = 1;
    std::string text;
    void add(const check::Comparison& comparison, double checked, const std::string& name);
  };

  const std::string& output_name(std::size_t output) const { return operation_.outputs[output].name; }
  void call_and_watch_memory();
  void call_and_watch_gpu_memory();
  std::string compare_outputs(int set, const std::vector<Expected>& unseen, const std::string& kind);
  std::optional<std::vector<Expected>> ties_of(int set, const std::vector<Expected>& expected) const;
  std::string compare_with_naive(const std::vector<Expected>& expected);
  void emit_check(const std::string& name, bool passed, std::int64_t cases, double error, double tolerance,
                  const std::string& message, double fraction);
  void emit_not_compared(const std::string& name, const std::string& why, double fraction);
  void tell_unjudged(std::size_t output, double part);
  // Of an output that passed by what ties with the reference's integers.
  void tell_ties(std::size_t output, const Expected& unseen, const Expected& tied);
  std::string not_judged_text(std::size_t output, double part) const;
  void widen(double& bound, const Expected& expected) const;
  bool is_mine() const;
  bool must_compare_all() const;
  bool has_time_to_verify() const;
  bool verify(int set);
  bool is_surely_right(int set);
  void look(std::span<const int> sets);
  void glance(int set);
  std::string what_the_oracle_says(int set, const Inputs& inputs, std::size_t output, const Far& far);
  [[noreturn]] static void fail_sample(const std::string& failure);
  measure::CachePlan cache_plan();
  int grow(int wanted);
  std::uint64_t memory_for_sets() const;

  CaseContext& context_;
  const Operation& operation_;
  const measure::Protocol& protocol_;
  const measure::Device& device_;
  device::Stream stream_;
  InputSets sets_;
  measure::CachePlan caches_;
  std::vector<Worst> worst_;
  std::vector<check::Comparison> comparisons_;  // of the last call that was checked
  Nanoseconds oracle_time_{};
  std::mt19937_64 chance_;
  std::vector<double> bounds_;                 // the largest tolerance of each output so far
  std::int64_t verified_ = 0, looked_at_ = 0;  // calls of this series, which
  Nanoseconds began_{};                        // then
  double peak_scratch_bytes_ = 0;
  std::optional<double> call_rss_bytes_, max_rss_bytes_;  // on the CPU
  std::optional<double> taken_bytes_;                     // on a GPU: what its driver had less after the call
  std::vector<device::KernelResources> kernels_;          // likewise: of the first call, as far as it is ours
};

// The metric `device_taken_bytes`: how much less the GPU's driver had after a call than before it. It counts all
// processes of that GPU; where others gave back more than the call took, nothing can be said of it.
void tell_device_taken(CaseContext& context, double less);

}  // namespace syslab::worker
