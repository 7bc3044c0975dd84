#include "measure/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "measure/rig.hpp"
#include "stats/summary.hpp"

namespace syslab::measure {
namespace {

constexpr double kLookGrowth = 1.5;  // 20, 30, 45, 68, …
constexpr double kSlow = 0.97;       // of a clock rate
constexpr auto kProgressEvery = std::chrono::seconds(1);

// Half-width of the median's interval, relative to the median.
double relative_precision(std::span<const double> samples) {
  const stats::Summary summary = stats::summarize(samples);
  if (summary.median <= 0) return std::numeric_limits<double>::infinity();
  return (summary.median_95.high - summary.median_95.low) / 2 / summary.median;
}

double median_clock(std::span<const double> values) { return stats::summarize(values).median; }

// Adds the flags that only all samples together can show, and leaves the list empty if no sample has a flag.
std::vector<std::int64_t> flags_of(std::vector<std::int64_t> flags, std::span<const double> clocks) {
  const double usual = clocks.empty() ? 0 : median_clock(clocks);
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    if (clocks[i] < kSlow * usual) flags[i] |= kSlowClock;
  }
  const bool any = std::any_of(flags.begin(), flags.end(), [](std::int64_t each) { return each != 0; });
  return any ? flags : std::vector<std::int64_t>{};
}

class Sampler {
 public:
  using Progress = std::function<void(double, const std::string&)>;

  Sampler(const Protocol& protocol, const Subject& subject, const Instruments& instruments, std::uint64_t random,
          const Progress& progress)
      : protocol_(protocol),
        clock_(instruments.clock),
        sleeper_(instruments.sleeper),
        device_(instruments.device),
        rig_(protocol, subject, instruments.device, instruments.clock, random),
        progress_(progress) {}

  Samples run() {
    rig_.warm_up();
    samples_.before = device_.state();
    most_ = rig_.samples_wanted() > 0 ? rig_.samples_wanted() : protocol_.max_samples;
    next_look_ = std::min(protocol_.min_samples, most_);
    began_ = last_progress_ = clock_.now();
    while (samples_.stop.empty()) {
      for (const Window& window : rig_.time_block(samples_until_something())) take(window);
      const bool look = count() >= next_look_;
      samples_.stop = reason_to_stop(look);
      rig_.verify(!samples_.stop.empty());
      if (samples_.stop.empty()) rig_.refresh();
      tell(look);
      if (look) next_look_ = static_cast<int>(std::ceil(next_look_ * kLookGrowth));
      if (look && samples_.stop.empty()) cool_down();
    }
    samples_.after = device_.state();
    samples_.clock_settled = rig_.clock_settled();
    samples_.calls_per_sample = rig_.calls_per_sample();
    samples_.graphs = rig_.uses_graphs();
    samples_.why_not_captured = rig_.why_not_captured();
    samples_.warmup_calls = rig_.warmup_calls();
    samples_.warmup_seconds = rig_.warmup_seconds();
    samples_.verified = rig_.verified();
    samples_.precision = relative_precision(samples_.seconds);
    samples_.wall = wall();
    if (samples_.clocks_hz.size() != samples_.seconds.size()) samples_.clocks_hz.clear();
    samples_.flags = flags_of(std::move(samples_.flags), samples_.clocks_hz);
    return std::move(samples_);
  }

 private:
  int count() const { return static_cast<int>(samples_.seconds.size()); }

  // Without verification: a slow oracle must not cost samples.
  Nanoseconds wall() const { return clock_.now() - began_ - rig_.in_verification(); }

  // A block must not run past the next look, the last sample or the device's budget.
  int samples_until_something() const {
    int most = std::min(next_look_, most_) - count();
    if (protocol_.device_budget > Nanoseconds{}) {
      const Nanoseconds each = std::max(rig_.call_estimate(), Nanoseconds(1)) * rig_.calls_per_sample();
      const Nanoseconds left = std::max(protocol_.device_budget - samples_.in_windows, Nanoseconds{});
      most = static_cast<int>(std::min<Nanoseconds::rep>(most, left / each + 1));
    }
    return most;
  }

  void take(const Window& window) {
    samples_.in_windows += window.elapsed;
    samples_.seconds.push_back(window.seconds_per_call());
    samples_.flags.push_back(window.flags);
    if (window.clock_hz) samples_.clocks_hz.push_back(*window.clock_hz);
  }

  std::string reason_to_stop(bool look) const {
    if (look && protocol_.precision > 0 && relative_precision(samples_.seconds) <= protocol_.precision) {
      return "precision";
    }
    // A protocol without a required precision has a number of samples as its aim, not as its limit.
    if (count() >= most_) return protocol_.precision > 0 ? "max_samples" : "count";
    if (protocol_.device_budget > Nanoseconds{} && samples_.in_windows >= protocol_.device_budget) {
      return "device_budget";
    }
    if (protocol_.wall_budget <= Nanoseconds{}) return {};
    if (wall() >= protocol_.wall_budget) return "wall_budget";
    // A slow oracle costs no samples that are needed, but it must end some day.
    if (count() >= protocol_.min_samples && rig_.in_verification() >= protocol_.wall_budget) return "wall_budget";
    return {};
  }

  // A device that has slowed down since the first look gets a pause, while pauses are left. A slow clock that pauses do
  // not fix (a power cap) is measured as it is, and its samples are flagged.
  void cool_down() {
    if (protocol_.cool_down <= Nanoseconds{} || samples_.clocks_hz.size() != samples_.seconds.size()) return;
    const std::span<const double> clocks(samples_.clocks_hz);
    const double recent = median_clock(clocks.subspan(last_look_));
    last_look_ = clocks.size();
    if (first_clock_ <= 0) first_clock_ = recent;
    if (recent >= kSlow * first_clock_) return;
    if (paused_ + protocol_.cool_down > protocol_.cool_down_limit) return;
    sleeper_.sleep(protocol_.cool_down);
    paused_ += protocol_.cool_down;
    ++samples_.pauses;
    rig_.rewarm();
  }

  void tell(bool look) {
    const Nanoseconds now = clock_.now();
    if (!progress_ || (!look && now - last_progress_ < kProgressEvery)) return;
    last_progress_ = now;
    double done = static_cast<double>(count()) / most_;
    const auto spent = [&done](Nanoseconds time, Nanoseconds budget) {
      if (budget > Nanoseconds{}) done = std::max(done, Seconds(time) / Seconds(budget));
    };
    spent(samples_.in_windows, protocol_.device_budget);
    spent(wall(), protocol_.wall_budget);
    std::string text = fmt::format("{} samples, {:.2f} %", count(), 100 * relative_precision(samples_.seconds));
    text += protocol_.precision > 0 ? fmt::format(" of {:.2f} % wanted", 100 * protocol_.precision)
                                    : fmt::format(" reached, {} samples wanted", most_);
    progress_(std::min(done, 1.0), text);
  }

  const Protocol& protocol_;
  Clock& clock_;
  Sleeper& sleeper_;
  Device& device_;
  Rig rig_;
  const Progress& progress_;
  Samples samples_;
  int most_ = 0, next_look_ = 0;
  Nanoseconds began_{}, last_progress_{}, paused_{};
  std::size_t last_look_ = 0;
  double first_clock_ = 0;  // at the first look, in Hz
};

}  // namespace

Samples take_samples(const Protocol& protocol, const Subject& subject, const Instruments& instruments,
                     std::uint64_t random, const std::function<void(double, const std::string&)>& progress) {
  return Sampler(protocol, subject, instruments, random, progress).run();
}

}  // namespace syslab::measure
