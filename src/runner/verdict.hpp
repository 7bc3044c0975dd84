// Derives a launch's status, reason and facts from how its case ended.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/process/process.hpp"
#include "runner/launch.hpp"
#include "runner/runner.hpp"

namespace syslab::runner {

// Observations of one worker during one case.
struct Ending {
  std::vector<worker::Record> records;
  std::optional<worker::EndRecord> end;  // its own last message
  std::optional<ExitStatus> exit;        // nothing: it lives on, or there was none
  bool shared = false;                   // between cases
  int worker = 0, cases_before = 0;      // which process of this run; cases it had before
  std::string not_started;               // why there was no worker
  std::string wire_error;                // it broke the wire format and was killed for it
  std::size_t pending_bytes = 0;         // of an incomplete frame
  bool timed_out = false;
  bool is_restless = false;   // it worked while it was stopped for another's turn, again and again
  int interrupted = 0;        // the signal that ended the run
  bool one_of_ranks = false;  // what it checked is judged with what the others checked
  std::string host;           // where it was, when a launcher has started several processes
  std::string last_progress, last_lines, stderr_tail;
};

// Whether the kernel's out-of-memory killer struck since construction, on this machine or in this container.
class OomWitness {
 public:
  OomWitness() : before_(kills()) {}
  bool struck() const { return kills() > before_; }

 private:
  static std::uint64_t kills();
  std::uint64_t before_;
};

Launch judge(Ending& ending, const MeasureSpec& spec, const OomWitness& witness);

// The end as far as its records support it: `ok` without a check that passed becomes `error`, `ok` with a falsified
// check becomes `check_failed`.
worker::EndRecord believed(const worker::EndRecord& end, std::span<const worker::Record> records);

}  // namespace syslab::runner
