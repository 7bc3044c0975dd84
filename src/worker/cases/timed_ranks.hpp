// The journey of a case that is a training step of somebody's class on ranks of Python, or of what it is timed beside:
// the hand-out's laws, then steps of the benchmark's transformer with new tokens each, then the weights that they left
// against those of one process.
//
//   TimedRanks timed{.training = …, .parameters = …};
//   timed.laws = data_parallel::laws(strategy, context.rank_channel());
//   worker::run_timed_ranks(context, timed);
//
// One worker does it for all ranks, since their processes have to be one another's kin to meet behind the walls
// (src/python/syslab_ranks.py). A sample is a step of all ranks, by our clock around it, or by theirs from the first
// rank's beginning to the last one's end where the two agree within 2 % (worker/judged/call_clock.hpp). Some weights
// are read right behind each: they must be those of one process after so many steps, or else work goes on when a step
// has ended.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "check/law.hpp"
#include "core/text/json.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab::worker {

struct TimedRanks {
  // As src/python/syslab_timing.py takes it, but for what is drawn here: "seed".
  Json training;
  std::vector<std::int64_t> parameters;  // elements of each, in the model's order
  // Searched on two ranks before anything is timed: those that the hand-out's tests look at, and of others only what
  // the ranks object to. None of the lab's own.
  std::vector<check::Law> laws;
  double tokens = 0;  // of a rank's step
};

// Emits a check record for each law, "reference:weights", series and metrics "time", "forward", "backward", "exposed",
// "update" and, where it is known, "communicating", of each rank. Throws CheckFailed, Unsupported, Error.
void run_timed_ranks(CaseContext& context, const TimedRanks& timed);

}  // namespace syslab::worker
