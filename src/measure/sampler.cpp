#include "measure/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>

#include "stats/summary.hpp"

namespace syslab::measure {
namespace {

constexpr std::size_t kSteadyWindow = 8;   // calls compared with the same number before them
constexpr double kSteadyShare = 0.01;      // their medians may differ by this much
constexpr double kLookGrowth = 1.5;        // 20, 30, 45, 68, …
constexpr double kMaximumCalls = 1 << 16;  // of one sample, should a call take less than the clock can tell
constexpr auto kProgressEvery = std::chrono::seconds(1);

class SteadyClock final : public Clock {
 public:
  Nanoseconds now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

double median_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return stats::quantile(sorted, 0.5);
}

bool is_steady(const std::vector<double>& calls) {
  if (calls.size() < 2 * kSteadyWindow) return false;
  const std::span<const double> recent(calls.end() - kSteadyWindow, calls.end());
  const std::span<const double> before(calls.end() - 2 * kSteadyWindow, calls.end() - kSteadyWindow);
  const double earlier = median_of(before);
  return std::abs(median_of(recent) - earlier) <= kSteadyShare * earlier;
}

// Half-width of the median's interval, relative to the median.
double relative_precision(std::span<const double> samples) {
  const stats::Summary summary = stats::summarize(samples);
  if (summary.median <= 0) return std::numeric_limits<double>::infinity();
  return (summary.median_95.high - summary.median_95.low) / 2 / summary.median;
}

class Sampler {
 public:
  using Progress = std::function<void(double, const std::string&)>;

  Sampler(const Protocol& protocol, const Subject& subject, Clock& clock, std::uint64_t random,
          const Progress& progress)
      : protocol_(protocol), subject_(subject), clock_(clock), generator_(random), progress_(progress) {}

  Samples run() {
    choose_granularity(warm_up());
    const Nanoseconds began = clock_.now();
    last_progress_ = began;
    int next_look = protocol_.min_samples;
    Nanoseconds in_windows{};
    while (samples_.stop.empty()) {
      const int first_set = next_set_;
      const Nanoseconds window = timed_window();
      in_windows += window;
      samples_.seconds.push_back(Seconds(window).count() / samples_.calls_per_sample);

      const int n = static_cast<int>(samples_.seconds.size());
      const bool look = n == next_look;
      if (look) {
        next_look = static_cast<int>(std::ceil(next_look * kLookGrowth));
        if (protocol_.precision > 0 && relative_precision(samples_.seconds) <= protocol_.precision) {
          samples_.stop = "precision";
        }
      }
      if (samples_.stop.empty()) samples_.stop = exhausted(n, in_windows, wall_since(began));
      verify_by_chance(first_set);
      refresh_after(first_set);
      tell(look, n, in_windows, wall_since(began));
    }
    samples_.precision = relative_precision(samples_.seconds);
    return std::move(samples_);
  }

 private:
  int take_set() {
    const int set = next_set_;
    next_set_ = (next_set_ + 1) % subject_.sets;
    return set;
  }

  // Ends once there were enough calls, enough time in them and, if asked, no trend any more; at the latest when
  // warmup_limit has passed on the clock, though never before the first call. Returns the time of one call.
  Nanoseconds warm_up() {
    std::vector<double> calls;
    Nanoseconds in_calls{};
    const Nanoseconds began = clock_.now();
    bool enough = false;
    do {
      const int set = take_set();
      const Nanoseconds start = clock_.now();
      subject_.call(set);
      const Nanoseconds took = subject_.self_time ? subject_.self_time() : clock_.now() - start;
      if (subject_.refresh) subject_.refresh(set);
      calls.push_back(static_cast<double>(took.count()));
      in_calls += took;
      enough = static_cast<int>(calls.size()) >= protocol_.warmup_calls && in_calls >= protocol_.warmup_time &&
               (!protocol_.warmup_until_steady || is_steady(calls));
    } while (!enough && clock_.now() - began < protocol_.warmup_limit);
    samples_.warmup_calls = static_cast<std::int64_t>(calls.size());
    const std::size_t recent = std::min(calls.size(), kSteadyWindow);
    return Nanoseconds(std::llround(median_of(std::span(calls).last(recent))));
  }

  // A call shorter than the floor is timed in groups, so that reading the clock and its resolution do not count.
  void choose_granularity(Nanoseconds estimate) {
    const double one = std::max<double>(static_cast<double>(estimate.count()), 1.0);
    const double floor = static_cast<double>(protocol_.sample_floor.count());
    samples_.calls_per_sample = static_cast<int>(std::clamp(std::ceil(floor / one), 1.0, kMaximumCalls));
  }

  // k calls, each on the next set. In cold mode a set was last touched a whole rotation ago.
  Nanoseconds timed_window() {
    if (subject_.self_time) {
      Nanoseconds total{};
      for (int i = 0; i < samples_.calls_per_sample; ++i) {
        subject_.call(take_set());
        total += subject_.self_time();
      }
      return total;
    }
    const Nanoseconds start = clock_.now();
    for (int i = 0; i < samples_.calls_per_sample; ++i) subject_.call(take_set());
    return clock_.now() - start;
  }

  std::string exhausted(int n, Nanoseconds in_windows, Nanoseconds wall) const {
    if (n >= protocol_.max_samples) return "max_samples";
    if (in_windows >= protocol_.device_budget) return "device_budget";
    if (wall >= protocol_.wall_budget) return "wall_budget";
    return {};
  }

  // Without verification: a slow oracle must not cost samples.
  Nanoseconds wall_since(Nanoseconds began) const { return clock_.now() - began - in_verification_; }

  // Decided after the window, so that no implementation can know which of its calls will be looked at. The last sample
  // is verified when chance picked none before it.
  void verify_by_chance(int first_set) {
    if (!subject_.verify) return;
    const bool chosen = std::uniform_real_distribution<>(0, 1)(generator_) < protocol_.verify_share;
    if (!chosen && (samples_.stop.empty() || samples_.verified > 0)) return;
    std::uniform_int_distribution<int> any_call(0, samples_.calls_per_sample - 1);
    const Nanoseconds start = clock_.now();
    if (subject_.verify((first_set + any_call(generator_)) % subject_.sets)) ++samples_.verified;
    in_verification_ += clock_.now() - start;
  }

  // New content for the sets just used: by the time they come round again the caches have forgotten them.
  void refresh_after(int first_set) {
    if (!subject_.refresh || !samples_.stop.empty()) return;
    const int used = std::min(samples_.calls_per_sample, subject_.sets);
    for (int i = 0; i < used; ++i) subject_.refresh((first_set + i) % subject_.sets);
  }

  void tell(bool look, int n, Nanoseconds in_windows, Nanoseconds wall) {
    const Nanoseconds now = clock_.now();
    if (!progress_ || (!look && now - last_progress_ < kProgressEvery)) return;
    last_progress_ = now;
    const double done = std::max({static_cast<double>(n) / protocol_.max_samples,
                                  Seconds(in_windows) / Seconds(protocol_.device_budget),
                                  Seconds(wall) / Seconds(protocol_.wall_budget)});
    const double reached = relative_precision(samples_.seconds);
    progress_(std::min(done, 1.0),
              fmt::format("{} samples, {:.2f} % of {:.2f} % wanted", n, 100 * reached, 100 * protocol_.precision));
  }

  const Protocol& protocol_;
  const Subject& subject_;
  Clock& clock_;
  std::mt19937_64 generator_;
  const Progress& progress_;
  Samples samples_;
  int next_set_ = 0;
  Nanoseconds last_progress_{}, in_verification_{};
};

}  // namespace

Clock& steady_clock() {
  static SteadyClock clock;
  return clock;
}

Samples take_samples(const Protocol& protocol, const Subject& subject, Clock& clock, std::uint64_t random,
                     const std::function<void(double, const std::string&)>& progress) {
  return Sampler(protocol, subject, clock, random, progress).run();
}

}  // namespace syslab::measure
