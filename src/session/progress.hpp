// Progress of a plan on standard error: a line that moves (session/progress_line.hpp), or a timestamped line per case.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "plan/plan.hpp"
#include "runner/runner.hpp"
#include "session/console.hpp"
#include "session/eta.hpp"
#include "session/progress_line.hpp"

namespace syslab::cli {

std::size_t terminal_width();  // in columns, of standard error's; 80 where it has none

// "case 37/112, flash_forward flash_tiled seq=128, 0.42 % of 0.50 % wanted, ETA 3 m 10 s, 2 m 0 s of the budget left",
// cut to `width` columns.
std::string progress_line(int number, int total, const std::string& label, const std::string& text,
                          std::optional<Nanoseconds> eta, std::optional<Nanoseconds> budget_left, std::size_t width);

// "ok  flash_forward flash_tiled seq=128  1.23 ms  12.3 GFLOP/s": the end of one case. `same_as`: the law that ended
// with the same message before; it is not told again.
std::string result_line(const runner::AttemptResult& result, const std::string& same_as = {});

class Progress {
 public:
  // `budget`: what the run may take, 0: no limit; what is left of it is shown.
  Progress(const Console& console, const plan::Plan& plan, Eta eta, Nanoseconds budget);

  void started(const plan::PlannedCase& planned);
  void said(const plan::PlannedCase& planned, const std::string& text);
  void heartbeat(const plan::PlannedCase& planned);
  void finished(const runner::AttemptResult& result);
  void left_out(const plan::PlannedCase& planned);  // for want of budget

 private:
  void draw(const plan::PlannedCase& planned);

  ProgressLine line_;
  int total_;
  int number_ = 0;
  std::string text_;
  std::map<std::string, std::string> told_;  // implementation and first line of a message → the law that said it first
  Eta eta_;
  std::chrono::steady_clock::time_point case_began_;
};

}  // namespace syslab::cli
