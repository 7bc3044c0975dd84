// Progress of comparisons on standard error: a line that moves (session/progress_line.hpp), or a line per launch.
// session/progress.hpp does the same for a plan's cases.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/text/units.hpp"
#include "session/progress_line.hpp"

namespace syslab::cli {

class ComparisonProgress {
 public:
  // `budget`: of all points together; 0: none.
  ComparisonProgress(const Console& console, std::size_t points, Nanoseconds budget);

  // Of point `point` (from 0) launch `launch` (from 0) begins; `expected` of them in all by what is known now, nothing
  // where only the budget knows.
  void launching(std::size_t point, const std::string& title, int launch, std::optional<int> expected);
  void said(const std::string& text);  // "block 3 of 16"
  void heartbeat() { draw(); }
  // It ended; `found` so far.
  void launched(const std::string& found);

 private:
  void draw();
  std::string where() const;  // "launch 3 of 12"
  // Until all points are done, each taken to need as many launches as this one, of a mean launch's length.
  std::optional<Nanoseconds> remaining() const;

  ProgressLine line_;
  std::size_t points_, point_ = 0;
  std::string title_, text_, found_;
  int launch_ = 0, launches_done_ = 0;
  std::optional<int> expected_;
  bool running_ = false;
  double seconds_done_ = 0;  // of launches
  std::chrono::steady_clock::time_point launch_began_, drawn_at_{};
};

}  // namespace syslab::cli
