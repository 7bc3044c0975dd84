#include "worker/operator_case.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "check/compare.hpp"
#include "device/blas.hpp"
#include "device/parallel.hpp"
#include "measure/sampler.hpp"
#include "stats/summary.hpp"
#include "worker/input_sets.hpp"

namespace syslab::worker {
namespace {

constexpr std::uint64_t kMostSetBytes = 1ULL << 30;  // of all input sets together
constexpr int kMostSets = 4096;
constexpr double kVerificationShare = 0.2;  // of the wall budget may go to verifying samples, after the first
constexpr double kHalfPrecisionFactor = 2;  // no less accurate than this many times the naive kernel
constexpr std::int64_t kFewestForInterval = 6;

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// A field of /proc/self/status in bytes ("VmHWM", "VmRSS").
std::optional<double> own_memory(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0 && line.size() > field.size() && line[field.size()] == ':') {
      return std::stod(line.substr(field.size() + 1)) * 1024;
    }
  }
  return std::nullopt;
}

// Makes VmHWM count from now (Linux, proc(5), clear_refs). False where the kernel does not let us.
bool reset_memory_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return static_cast<bool>(file);
}

// Worst outcome of one output over everything that was compared.
struct Worst {
  double error = 0, tolerance = 0, ratio = -1;
  std::int64_t compared_sets = 0;
  double fraction = 1;
  std::string text;

  void add(const check::Comparison& comparison, double checked, const std::string& name) {
    ++compared_sets;
    fraction = std::min(fraction, checked);
    if (comparison.worst_ratio <= ratio) return;
    ratio = comparison.worst_ratio;
    error = comparison.worst_error;
    tolerance = comparison.worst_tolerance;
    text = comparison.describe(name);
  }
};

class Journey {
 public:
  Journey(CaseContext& context, const OperatorCase& operator_case)
      : context_(context),
        case_(operator_case),
        protocol_(measure::find_protocol(context.request().protocol)),
        sets_(context, operator_case),
        worst_(operator_case.outputs.size()) {}

  void run() {
    check_once();
    measure();
  }

 private:
  const std::string& output_name(std::size_t output) const { return case_.outputs[output].tensor.name; }

  void check_once() {
    context_.progress(0, "checking");
    call_and_watch_memory();
    const Tensors& tensors = sets_.tensors(0);
    const Nanoseconds began = measure::steady_clock().now();
    const std::vector<Expectation> expected = case_.expect(tensors);
    oracle_time_ = measure::steady_clock().now() - began;

    std::string failure = compare_outputs(0, expected, "reference");
    if (std::any_of(case_.outputs.begin(), case_.outputs.end(),
                    [](const OutputSpec& output) { return is_half(output.tensor.dtype); })) {
      const std::string inaccurate = compare_with_naive(tensors, expected);
      if (failure.empty()) failure = inaccurate;
    }
    if (!failure.empty()) throw CheckFailed(failure);
  }

  // Our own buffers are counted by their log; whatever else the implementation takes, by the kernel's high-water mark.
  void call_and_watch_memory() {
    device::MemoryLog& log = device::MemoryLog::global();
    log.reset_peak();
    const std::int64_t live = log.live_bytes();
    const std::optional<double> resident = own_memory("VmRSS");
    const bool reset = reset_memory_peak();
    case_.call(sets_.tensors(0));
    const std::optional<double> peak = own_memory("VmHWM");
    peak_scratch_bytes_ = static_cast<double>(log.peak_bytes() - live);
    if (reset && resident && peak) call_rss_bytes_ = std::max(0.0, *peak - *resident);
    max_rss_bytes_ = peak;  // before the oracle, whose memory is no part of the implementation
  }

  // A record per output, "<kind>:<output>". Returns the first failure's text, empty when all passed.
  std::string compare_outputs(int set, const std::vector<Expectation>& expected, const std::string& kind) {
    if (expected.size() != case_.outputs.size()) {
      throw Error(ErrorKind::internal, fmt::format("the oracle told of {} outputs, the operator has {}",
                                                   expected.size(), case_.outputs.size()));
    }
    std::string failure;
    comparisons_.clear();
    const std::optional<std::string> changed = sets_.changed_inputs(set);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const check::Comparison comparison =
          check::compare(sets_.tensors(set).outputs[i], expected[i].value, expected[i].tolerance);
      comparisons_.push_back(comparison);
      worst_[i].add(comparison, expected[i].fraction, output_name(i));
      std::optional<std::string> misuse = sets_.misuse(set, i);
      if (!misuse) misuse = changed;
      const bool passed = comparison.passed && !misuse;
      std::string message = comparison.describe(output_name(i));
      if (misuse) message = *misuse + "; " + message;
      if (!passed && failure.empty()) failure = message;
      if (kind == "reference" || !passed) {
        emit_check(kind + ":" + output_name(i), passed, 1, comparison.worst_error, comparison.worst_tolerance, message,
                   expected[i].fraction);
      }
    }
    return failure;
  }

  std::string compare_with_naive(const Tensors& tensors, const std::vector<Expectation>& expected) {
    if (!case_.naive_error) return {};
    const std::vector<double> naive = case_.naive_error(tensors, expected);
    std::string failure;
    for (std::size_t i = 0; i < case_.outputs.size(); ++i) {
      if (!is_half(case_.outputs[i].tensor.dtype)) continue;
      const double allowed = kHalfPrecisionFactor * naive.at(i);
      const double found = comparisons_[i].max_error;
      const bool passed = found <= allowed;
      const std::string message =
          fmt::format("{}: largest error {:.3g}, the naive kernel's in {} is {:.3g}", output_name(i), found,
                      to_string(case_.outputs[i].tensor.dtype), naive.at(i));
      if (!passed && failure.empty()) failure = message + ", at most twice that is allowed";
      emit_check("naive:" + output_name(i), passed, 1, found, allowed, message, expected[i].fraction);
    }
    return failure;
  }

  void emit_check(const std::string& name, bool passed, std::int64_t cases, double error, double tolerance,
                  const std::string& message, double fraction) {
    CheckRecord record;
    record.name = name;
    record.outcome = passed ? "passed" : "falsified";
    record.cases_run = cases;
    record.seed = std::to_string(context_.request().seed);
    record.message = message;
    if (std::isfinite(error)) record.worst_error = error;
    if (std::isfinite(tolerance)) record.tolerance = tolerance;
    record.fraction_checked = fraction;
    context_.emit(record);
  }

  // --- measuring ----------------------------------------------------------------------------------------------------

  // Enough sets that one rotation touches more than twice the last-level cache, as far as memory allows.
  int wanted_sets() const {
    if (!protocol_.cold) return 1;
    const std::uint64_t each = std::max<std::uint64_t>(sets_.bytes_per_set(), 1);
    std::uint64_t budget = kMostSetBytes;
    const auto pages = static_cast<std::uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
    budget = std::min(budget, pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 8);
    if (const std::uint64_t limit = context_.request().memory_limit_bytes; limit > 0) {
      budget = std::min(budget, limit / 4);
    }
    const std::uint64_t beyond_cache = 2 * last_level_cache_bytes() / each + 1;
    const std::uint64_t affordable = budget / each;
    return static_cast<int>(std::clamp<std::uint64_t>(std::min(beyond_cache, affordable), 1, kMostSets));
  }

  void measure() {
    sets_.grow(wanted_sets());
    measure::Subject subject;
    subject.sets = sets_.count();
    subject.call = [this](int set) { case_.call(sets_.tensors(set)); };
    subject.refresh = [this](int set) { sets_.refresh(set); };
    subject.verify = [this](int set) { return verify(set); };
    subject.self_time = case_.self_time;
    sets_.refresh(0);  // the check used it
    const measure::Samples samples =
        measure::take_samples(protocol_, subject, measure::steady_clock(), context_.request().seed,
                              [this](double fraction, const std::string& text) { context_.progress(fraction, text); });
    for (std::size_t i = 0; i < case_.outputs.size(); ++i) {
      emit_check("samples:" + output_name(i), true, samples.verified, worst_[i].error, worst_[i].tolerance,
                 fmt::format("{} of {} timed samples verified; worst: {}", samples.verified, samples.seconds.size(),
                             worst_[i].text),
                 worst_[i].fraction);
    }
    emit_times(samples);
    emit_accuracy_and_memory();
    emit_facts(samples);
  }

  // A timed sample's outputs against the oracle of that sample's inputs. The first is always looked at; after that a
  // slow oracle gets a share of the time.
  bool verify(int set) {
    const double budget = kVerificationShare * Seconds(protocol_.wall_budget).count();
    if (verified_ > 0 && Seconds(oracle_time_).count() * static_cast<double>(verified_ + 1) > budget) return false;
    ++verified_;
    const std::string failure = compare_outputs(set, case_.expect(sets_.tensors(set)), "sample");
    if (!failure.empty()) throw CheckFailed("a timed sample is wrong though the first call was right: " + failure);
    return true;
  }

  void emit_times(const measure::Samples& samples) {
    SampleRecord record;
    record.series = "time";
    record.unit = "s";
    record.values = samples.seconds;
    context_.emit(record);

    const stats::Summary summary = stats::summarize(samples.seconds);
    MetricRecord time{.name = "time", .unit = "s", .value = summary.median, .n = summary.n};
    if (summary.n >= kFewestForInterval) {
      time.low = summary.median_95.low;
      time.high = summary.median_95.high;
    } else {
      time.note = fmt::format("{} samples are too few for a 95 % interval", summary.n);
    }
    context_.emit(time);
    context_.metric("time_q1", "s", summary.q1);
    context_.metric("time_q3", "s", summary.q3);
    context_.metric("time_min", "s", summary.min);
    context_.metric("time_mean", "s", summary.mean);
    context_.metric("time_stddev", "s", summary.standard_deviation);
    emit_rate("tflops", "TFLOP/s", case_.flops * 1e-12, time);
    emit_rate("gbps", "GB/s", case_.bytes * 1e-9, time);
  }

  // Work per time; the interval turns round: the longest time is the lowest rate.
  void emit_rate(const std::string& name, const std::string& unit, double work, const MetricRecord& time) {
    if (!(work > 0) || !(*time.value > 0)) return;
    MetricRecord rate{.name = name, .unit = unit, .value = work / *time.value, .n = time.n, .note = time.note};
    if (time.low && time.high && *time.low > 0) {
      rate.low = work / *time.high;
      rate.high = work / *time.low;
    }
    context_.emit(rate);
  }

  void emit_accuracy_and_memory() {
    for (std::size_t i = 0; i < case_.outputs.size(); ++i) {
      context_.metric("error_" + output_name(i), "1", worst_[i].error);
      context_.metric("tolerance_" + output_name(i), "1", worst_[i].tolerance);
    }
    context_.metric("peak_scratch_bytes", "B", peak_scratch_bytes_);
    if (call_rss_bytes_) {
      context_.metric("call_rss_bytes", "B", *call_rss_bytes_);
    } else {
      context_.missing_metric("call_rss_bytes", "B", "the kernel does not let a process reset its own peak");
    }
    if (max_rss_bytes_) {
      context_.metric("max_rss_bytes", "B", *max_rss_bytes_);
    } else {
      context_.missing_metric("max_rss_bytes", "B", "no VmHWM in /proc/self/status");
    }
  }

  void emit_facts(const measure::Samples& samples) {
    const std::uint64_t rotated = sets_.bytes_per_set() * static_cast<std::uint64_t>(sets_.count());
    const bool cold = protocol_.cold && rotated > 2 * last_level_cache_bytes();
    Json facts{{"protocol", measure::to_json(protocol_)},
               {"stop", samples.stop},
               {"samples", samples.seconds.size()},
               {"calls_per_sample", samples.calls_per_sample},
               {"precision", samples.precision},
               {"warmup_calls", samples.warmup_calls},
               {"verified", samples.verified},
               {"input_sets", sets_.count()},
               {"rotated_bytes", rotated},
               {"last_level_cache_bytes", last_level_cache_bytes()},
               {"cache", cold             ? "cold"
                         : protocol_.cold ? "partly cold"
                                          : "hot"},
               {"data", context_.request().data},
               {"threads", device::thread_count()},
               {"blas", device::blas_name()}};
    context_.emit(FactRecord{facts.dump()});
  }

  CaseContext& context_;
  const OperatorCase& case_;
  measure::Protocol protocol_;
  InputSets sets_;
  std::vector<Worst> worst_;
  std::vector<check::Comparison> comparisons_;  // of the last call that was checked
  Nanoseconds oracle_time_{};
  std::int64_t verified_ = 0;
  double peak_scratch_bytes_ = 0;
  std::optional<double> call_rss_bytes_, max_rss_bytes_;
};

}  // namespace

void run_operator_case(CaseContext& context, const OperatorCase& operator_case) {
  Journey(context, operator_case).run();
}

}  // namespace syslab::worker
