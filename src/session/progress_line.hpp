// The line on standard error that tells where something long stands: one that is rewritten on a terminal, otherwise (or
// if CI is set) none that moves, and nothing under --quiet. Its owner knows what is in it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/text/units.hpp"
#include "session/console.hpp"

namespace syslab::cli {

class ProgressLine {
 public:
  enum class Mode { none, terminal, lines };

  // `budget`: what all of it may take, from now on; 0: no limit.
  ProgressLine(const Console& console, Nanoseconds budget);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  Mode mode() const { return mode_; }
  void draw(const std::string& line);  // in place of the last one; on a terminal only
  void clear();                        // before another line is written
  std::optional<Nanoseconds> budget_left() const;

 private:
  Mode mode_;
  Nanoseconds budget_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  bool drawn_ = false;
};

}  // namespace syslab::cli
