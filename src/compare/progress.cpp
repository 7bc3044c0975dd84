#include "compare/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/text/printable.hpp"
#include "session/progress.hpp"

namespace syslab::cli {
namespace {

// A line is drawn between two bursts. At this interval a terminal costs the comparison nothing.
constexpr auto kRedraw = std::chrono::milliseconds(200);

}  // namespace

ComparisonProgress::ComparisonProgress(const Console& console, std::size_t points, Nanoseconds budget)
    : line_(console, budget), points_(points) {}

void ComparisonProgress::launching(std::size_t point, const std::string& title, int launch,
                                   std::optional<int> expected) {
  if (launch == 0) found_.clear();
  point_ = point;
  title_ = one_line(title);
  launch_ = launch;
  expected_ = expected;
  text_.clear();
  running_ = true;
  launch_began_ = std::chrono::steady_clock::now();
  draw();
}

void ComparisonProgress::said(const std::string& text) {
  text_ = text;
  if (std::chrono::steady_clock::now() - drawn_at_ >= kRedraw) draw();
}

void ComparisonProgress::launched(const std::string& found) {
  running_ = false;
  found_ = found;
  ++launches_done_;
  seconds_done_ += Seconds(std::chrono::steady_clock::now() - launch_began_).count();
  line_.clear();
  if (line_.mode() != ProgressLine::Mode::lines) return;
  const auto eta = remaining();
  to_error(fmt::format("{} {}: {}{}\n", title_, where(), printable(found),
                       eta && eta->count() > 0 ? ", ETA " + format_duration(*eta) : ""));
}

std::string ComparisonProgress::where() const {
  return expected_ ? fmt::format("launch {} of {}", launch_ + 1, *expected_) : fmt::format("launch {}", launch_ + 1);
}

std::optional<Nanoseconds> ComparisonProgress::remaining() const {
  const std::optional<Nanoseconds> left = line_.budget_left();
  if (!expected_ || launches_done_ == 0) return left;
  const double mean = seconds_done_ / launches_done_;
  const int of_this_point = *expected_ - launch_ - 1;
  const double launches =
      std::max(of_this_point, 0) + static_cast<double>(points_ - std::min(point_ + 1, points_)) * *expected_;
  const double of_this_launch =
      running_ ? std::max(mean - Seconds(std::chrono::steady_clock::now() - launch_began_).count(), 0.0) : 0;
  const auto eta = std::chrono::duration_cast<Nanoseconds>(Seconds(launches * mean + of_this_launch));
  return left ? std::min(eta, *left) : eta;
}

void ComparisonProgress::draw() {
  if (!running_) return;
  std::string text = where();
  if (!text_.empty()) text += ", " + text_;
  if (!found_.empty()) text += ", so far " + found_;
  line_.draw(progress_line(static_cast<int>(point_) + 1, static_cast<int>(points_), title_, text, remaining(),
                           std::nullopt, terminal_width() - 1));
  drawn_at_ = std::chrono::steady_clock::now();
}

}  // namespace syslab::cli
