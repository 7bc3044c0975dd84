// How a case is measured: read from the command line, stored with the run, sent to the worker. Structs that need more
// fields derive from it, so that it is passed on as a whole:
//
//   a run          cli::Conditions (stored)            ─▶ runner::RunOptions    ─▶ worker::CaseRequest
//   a comparison   cli::ComparisonConditions (stored)  ─▶ runner::PairedOptions ─▶ worker::CaseRequest
//
//   static_cast<MeasureSpec&>(request) = options;
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/text/units.hpp"

namespace syslab {

struct MeasureSpec {
  std::string protocol = "kernel";       // measuring protocol, by its name in measure/protocol.hpp
  std::string data = "normal";           // distribution of inputs: normal, uniform, zeros, ramp
  int law_cases = 100;                   // inputs tried per law
  Nanoseconds law_time{};                // of a law that holds: inputs are tried for this long; 0: law_cases of them
  Nanoseconds law_limit{};               // of a law that holds: no input is begun later, after the first few; 0: none
  std::uint64_t memory_limit_bytes = 0;  // RLIMIT_AS of a worker is below its own needs plus this; 0: none
  // For one attempt with all its launches; then the host kills its process group. A worker is told it for a law alone.
  Nanoseconds timeout = std::chrono::minutes(10);
};

}  // namespace syslab
