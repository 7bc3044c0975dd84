// The journey of a case that is a training step of somebody's class on ranks of Python, or of what it is timed beside:
// the hand-out's laws, then steps of the benchmark's transformer with new tokens each, then the weights that they left
// against those of one process.
//
//   TimedRanks timed{.training = …, .parameters = …};
//   timed.laws = data_parallel::laws(strategy, context.rank_channel());
//   worker::run_timed_ranks(context, timed);
//
// One worker does it for all ranks, since their processes have to be one another's kin to meet behind the walls
// (tools/python/syslab_ranks.py). A sample is a step of all ranks, by our clock around it, or by theirs from the first
// rank's beginning to the last one's end where the two agree within 2 % (worker/call_clock.hpp). Some weights are read
// right behind each: they must be those of one process after so many steps, or else work goes on when a step has ended.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "check/law.hpp"
#include "core/json.hpp"
#include "worker/case_context.hpp"

namespace syslab::worker {

struct TimedRanks {
  // As tools/python/syslab_timing.py takes it, but for what is drawn here: "seed".
  Json training;
  std::vector<std::int64_t> parameters;  // elements of each, in the model's order
  // Searched on two ranks before anything is timed: those that the hand-out's tests look at. None of the lab's own.
  std::vector<check::Law> laws;
  double tokens = 0;  // of a rank's step
};

// Emits a check record for each law, "reference:weights", series and metrics "time", "forward", "backward", "exposed",
// "update" and, where it is known, "communicating", of each rank. Throws CheckFailed, Unsupported, Error.
void run_timed_ranks(CaseContext& context, const TimedRanks& timed);

// How far weights may be from those of one process (`alone`, computed in two ways that are right and round
// differently), by parameter: eight times as far as the two are from one another, over that parameter or, where that is
// more, its share of all; and what rounding an fp32 number 16 times may do to each.
struct WeightBounds {
  double worst = 0;  // distance over bound, of the parameter where that is largest
  std::size_t parameter = 0;
};
WeightBounds compare_weights(std::span<const float> found, std::span<const float> alone,
                             std::span<const float> otherwise, std::span<const std::int64_t> elements);

// What judged ranks tell of their steps' phases, added up, beside the steps' times, in seconds: what is wrong with it,
// or nothing. It is where nearly every step's phases leave out, or add, more than 2 % and 1 ms: a busy machine makes
// waits long, and hardly all of them. Of fewer than ten steps it may be all: 10 % and 10 ms.
std::string phases_apart(std::span<const double> told, std::span<const double> times);

}  // namespace syslab::worker
