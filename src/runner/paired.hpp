// One paired launch: both sides of a comparison measured again, each in one fresh process, in turns, so that whatever
// befalls the machine befalls both (docs/worker-protocol.md, "Serving bursts"; harness: ABBA blocks).
//
//   PairedLaunch launch = run_paired_launch(a, b, number, options, observer, interruption);
//   if (launch.complete()) for (const PairedBlock& block : launch.blocks) use(block.log_ratio);
//
// How many launches are enough, and what they say, is the caller's to decide (stats/).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "runner/interruption.hpp"
#include "runner/runner.hpp"

namespace syslab::runner {

struct PairedSide {
  std::string label;                        // "A": for people, in the reasons of results
  plan::PlannedCase planned;                // results point at it: the side must outlive them
  std::vector<plan::MineSpec> mine;         // where planned.implementation is somebody's
  std::vector<std::string> worker_command;  // empty: this binary, verb `worker`; else another build's
};

struct PairedOptions {
  std::string protocol = "kernel";
  std::string data = "normal";
  // Short bursts, many blocks: what befalls a machine for 10 to 100 ms then befalls whole blocks, which leave it out of
  // the ratio or are left out themselves (stats::midmean), and not one burst of a block (docs/performance.md,
  // "Comparisons on trial").
  Nanoseconds burst = std::chrono::milliseconds(2);  // length of one burst aimed at; never less than one call
  int blocks_per_launch = 16;                        // fewer, where as many would measure for longer than `measuring`
  int fewest_blocks = 4;                             // but never fewer than these
  Nanoseconds measuring = std::chrono::milliseconds(160);
  Nanoseconds timeout = std::chrono::minutes(10);  // of the whole launch
  std::uint64_t memory_limit_bytes = 0;            // of each side; 0: none
  std::uint64_t seed = 0;                          // draws the order of each block
  Places* places = nullptr;                        // of the ranks of a case; null: all are here
};

// Four bursts, in order of time. Orders are drawn so that a launch has as many of the one as of the other, give or take
// one, and cannot be in step with anything periodic.
struct PairedBlock {
  int launch = 0, block = 0;
  std::string order;                // "ABBA" or "BAAB"
  std::array<double, 4> seconds{};  // per call, in order of time
  double log_ratio = 0;             // mean log B − mean log A: positive where B is slower
};

struct PairedLaunch {
  AttemptResult a, b;
  std::vector<PairedBlock> blocks;  // those that became whole
  bool complete() const { return a.status == worker::Status::ok && b.status == worker::Status::ok; }
};

// Starts the sides one after the other (A first in even launches, B in odd ones); each makes its inputs, is checked,
// warms up and then waits without using a processor, but for the bursts that it is ordered. Both end with samples,
// metrics and facts like any attempt, and can be stored as such.
//
// Nothing is compared unless both sides are right. When one of them ends before it was asked to, for whatever reason,
// the other is ended, too: `aborted`, with the reason, unless it had ended itself. A signal aborts both. Two sides may
// have different parameters; equal ones meet equal inputs.
//
// observer: `started`, `progress` and `heartbeat` are called for each side's case; `finished` is not, the results are
// returned. What a callback throws comes out, after both workers were killed.
PairedLaunch run_paired_launch(const PairedSide& a, const PairedSide& b, int launch, const PairedOptions& options,
                               const Observer& observer, const Interruption& interruption);

}  // namespace syslab::runner
