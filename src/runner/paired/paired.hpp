// One paired launch: measures both sides of a comparison in turns, each in one fresh process, so that disturbances of
// the machine affect both (docs/worker-wire.md, "Serving bursts"; harness: ABBA blocks).
//
//   PairedLaunch launch = run_paired_launch(a, b, number, options, observer, interruption);
//   if (launch.complete()) for (const PairedBlock& block : launch.blocks) use(block.log_ratio);
//
// The caller decides how many launches are enough and evaluates them (stats/).
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runner/interruption.hpp"
#include "runner/runner.hpp"

namespace syslab::runner {

class SideWorkers;  // runner/paired/side_workers.hpp

struct PairedSide {
  std::string label;                        // "A": shown in the reasons of results
  plan::PlannedCase planned;                // results point at it: the side must outlive them
  std::vector<Submitted> mine;              // if planned.implementation is external
  std::vector<std::string> worker_command;  // empty: this binary, verb `worker`; otherwise another build
};

// How the launches of a comparison are measured; the timeout applies to a whole launch, the memory limit to each side.
struct PairedSpec : MeasureSpec {
  // Short bursts, many blocks: a disturbance of 10 to 100 ms then affects whole blocks, where it cancels in the ratio
  // or which the statistics discard (stats::midmean), rather than one burst of a block (reports/ledger/lab.md,
  // "Comparisons on trial").
  Nanoseconds burst = std::chrono::milliseconds(2);  // target length of a burst; at least one call
  int blocks_per_launch = 16;                        // fewer if they would take longer than `measuring`
  int fewest_blocks = 4;                             // but never fewer than these
  Nanoseconds measuring = std::chrono::milliseconds(160);
  // And no more than these once they have taken so long on the wall: what lies between the calls may take a thousand
  // times as long as they do.
  Nanoseconds longest = std::chrono::seconds(3);
  // More of them, up to kMostTimes as many, where they scatter so that they and not the launch say how well its ratio
  // is known, and for no longer than half of what its start has taken: the looks go to the scatter, never to the ratio.
  bool may_go_on = false;
  static constexpr int kMostTimes = 8;
};

struct PairedOptions : PairedSpec {
  std::uint64_t seed = 0;    // draws the order of each block
  bool kernel_code = false;  // of both sides the code of their kernels is asked for; of the first launch, by itself
  Places* places = nullptr;  // of the ranks of a case; null: all on this host
  // Of sides that are functions: a worker that ends well stays for the next launch; null: each launch has its own.
  SideWorkers* workers = nullptr;
  // Where both sides are functions, what is judged of both starts at the same time. From their first calls on (which
  // may tune themselves) they have the machine in turns. For workers that know the word `go` (docs/worker-wire.md).
  bool starts_together = false;
  // The launch takes fewer blocks than it might, at least one, so that it has ended by then; or it is cut.
  std::optional<std::chrono::steady_clock::time_point> until;
};

// Four bursts, in order of time. Orders are drawn at random, balanced to within one per launch, so that they cannot
// align with periodic disturbances.
struct PairedBlock {
  int launch = 0, block = 0;
  std::string order;                // "ABBA" or "BAAB"
  std::array<double, 4> seconds{};  // per call, in order of time
  double log_ratio = 0;             // mean log B − mean log A: positive if B is slower
};

struct PairedLaunch {
  AttemptResult a, b;
  std::vector<PairedBlock> blocks;  // complete ones
  bool cut = false;                 // it had not ended by `until`: both are aborted, and nothing is said of either
  bool complete() const { return a.status == Status::ok && b.status == Status::ok; }
};

// Starts the sides one after the other (A first in even launches, B in odd ones); each creates its inputs, is checked,
// warms up and then waits without using the processor, except for ordered bursts. Both end with samples, metrics and
// facts like any attempt, and can be stored as such.
//
// Nothing is compared unless both sides are correct. If one ends early for any reason, the other is ended too:
// `aborted` with the reason, unless it has ended by itself. A signal aborts both. Two sides may have different
// parameters; equal ones meet equal inputs.
//
// observer: `started`, `progress` and `heartbeat` are called for each side's case; `finished` is not, the results are
// returned. Exceptions of callbacks propagate after both workers were killed.
PairedLaunch run_paired_launch(const PairedSide& a, const PairedSide& b, int launch, const PairedOptions& options,
                               const Observer& observer, const Interruption& interruption);

}  // namespace syslab::runner
