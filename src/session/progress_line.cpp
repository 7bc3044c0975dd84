#include "session/progress_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/process/environment_variable.hpp"

namespace syslab::cli {
namespace {

constexpr const char* kFromFirstColumn = "\r\x1b[2K";  // which erases what stands there

}  // namespace

ProgressLine::ProgressLine(const Console& console, Nanoseconds budget) : budget_(budget) {
  const bool moves = console.error_is_terminal() && environment_variable("CI").empty();
  mode_ = console.quiet() ? Mode::none : moves ? Mode::terminal : Mode::lines;
}

void ProgressLine::draw(const std::string& line) {
  if (mode_ != Mode::terminal) return;
  to_error(kFromFirstColumn + line);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  to_error(kFromFirstColumn);
  std::fflush(stderr);
  drawn_ = false;
}

std::optional<Nanoseconds> ProgressLine::budget_left() const {
  if (budget_.count() <= 0) return std::nullopt;
  return std::max(budget_ - (std::chrono::steady_clock::now() - began_), Nanoseconds{});
}

}  // namespace syslab::cli
