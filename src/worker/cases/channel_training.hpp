// The training that ranks of Python do together, one call after the other over their channel: tokens and a step, what
// each has told of it and some weights that it has left, and at the end all weights, which one process says too.
//
//   ChannelTraining training(context, timed, context.rank_channel());
//   training.refresh();                            // new tokens
//   training.step();                               // the only call that is timed
//   const auto checks = training.check_weights();  // ends the ranks
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "contract/measured_step.hpp"
#include "core/call_channel.hpp"
#include "core/random.hpp"
#include "core/text/json.hpp"
#include "core/text/units.hpp"
#include "worker/cases/case_context.hpp"
#include "worker/cases/timed_ranks.hpp"

namespace syslab::worker {

// What a rank tells of a step, in the order of FIELDS in syslab_timing.py.
struct Told {
  double forward, backward, exposed, update, communicating, hidden, messages, bytes, loss, state, held, peak;
};

class ChannelTraining {
 public:
  // Opens it: the ranks begin. `timed` outlives it. Throws what a call does (core/call_channel.hpp), as all that calls.
  ChannelTraining(CaseContext& context, const TimedRanks& timed, std::shared_ptr<CallChannel> channel);

  void refresh();
  void step();
  double seconds() const;  // of the last step

  // Whether all ranks' losses of the last step are numbers.
  StepCheck check_loss() const;
  // Of each rank its weights, and those behind each step: all steps so far were taken by one process as well, by the
  // lab's own, once these ranks have ended.
  std::vector<StepCheck> check_weights();

  // What ranks told of the last step, unless that is kept already or there was none; refresh() does it, too.
  void keep();
  std::int64_t ranks() const { return ranks_; }
  const std::vector<std::vector<Told>>& kept() const { return kept_; }  // of each step, of each rank
  const std::vector<Told>& last() const { return told_; }

 private:
  struct Picked {
    std::int64_t first = 0, stride = 1, count = 0, total = 0;
    std::vector<std::int64_t> elements;  // of each parameter that were picked
  };

  std::int64_t step_stride() const { return total_ / a_step_; }
  // After each step some weights were read, before whoever works on could end: those of one process after so many steps
  // say what they must have been. The furthest of all.
  StepCheck check_steps(std::span<const float> first, std::span<const float> second) const;
  // What a step has left, in no time: some weights of each rank, which it has read behind its answer, and what it
  // tells.
  void ask();
  // Every so many, from a place on that nobody knows before.
  Picked pick() const;

  CaseContext& context_;
  const TimedRanks& timed_;
  std::shared_ptr<CallChannel> channel_;
  Json case_;
  std::int64_t ranks_, total_ = 0, a_step_ = 0;  // weights: all, and those that are read after each step
  RandomStream tokens_, places_ = context_.unforeseen("places");
  std::vector<std::uint64_t> seeds_;
  std::vector<std::int64_t> firsts_;       // of each step, where its weights begin
  std::vector<std::vector<float>> after_;  // of each step, rank after rank
  std::vector<Told> told_;
  std::vector<std::vector<Told>> kept_;
  Nanoseconds elapsed_{};
  bool fresh_ = false;
};

}  // namespace syslab::worker
