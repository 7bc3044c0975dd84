#include "worker/cases/checked_operator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/process/own_memory.hpp"
#include "device/buffer.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "measure/clock.hpp"
#include "worker/cases/compare_output.hpp"
#include "worker/cases/naive_error.hpp"

namespace syslab::worker {
namespace {

constexpr std::uint64_t kMostSetBytes = 1ULL << 30;     // of all input sets together
constexpr std::uint64_t kMostGpuSetBytes = 1ULL << 33;  // the same on a GPU, which fills them a thousand times faster
constexpr std::uint64_t kMostHotSets = 4096;
constexpr double kVerificationShare = 0.2;  // of the time that has passed may go to the oracle, after the first call
constexpr double kHalfPrecisionFactor = 2;  // no less accurate than this many times the naive kernel
// Parts of an output that nothing judges: from the first on it is told, from the second on the result is not known to
// be right. Of right functions without jumps it was at most 0.3 % (tests/e2e/bounds_alone.py).
constexpr double kToldUnjudged = 0.01, kMostUnjudged = 0.25;

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

}  // namespace

void CheckedOperator::Worst::add(const check::Comparison& comparison, double checked, const std::string& name) {
  fraction = std::min(fraction, checked);
  if (comparison.worst_ratio <= ratio) return;
  ratio = comparison.worst_ratio;
  error = comparison.worst_error;
  tolerance = comparison.worst_tolerance;
  text = comparison.describe(name);
}

CheckedOperator::CheckedOperator(CaseContext& context, const Operation& operation, const measure::Protocol& protocol,
                                 const measure::Device& device, std::uint64_t chance, device::Stream stream)
    : context_(context),
      operation_(operation),
      protocol_(protocol),
      device_(device),
      stream_(stream),
      sets_(context, operation, stream),
      worst_(operation.outputs.size()),
      chance_(chance),
      bounds_(operation.outputs.size()) {}

void CheckedOperator::check() {
  const device::NvtxRange range("check");
  stream_.kind == device::Kind::cpu ? call_and_watch_memory() : call_and_watch_gpu_memory();
  const Nanoseconds began = measure::steady_clock().now();
  const std::vector<Expected> expected = sets_.expect(0);
  device::synchronize(stream_);
  oracle_time_ = measure::steady_clock().now() - began;

  std::string failure = compare_outputs(0, expected, "reference");
  if (std::any_of(operation_.outputs.begin(), operation_.outputs.end(),
                  [](const TensorSpec& output) { return is_half(output.dtype); })) {
    const std::string inaccurate = compare_with_naive(expected);
    if (failure.empty()) failure = inaccurate;
  }
  if (!failure.empty()) throw CheckFailed(failure);
}

// Our own buffers are counted by their log; everything else that the implementation takes, by the kernel's high-water
// mark.
void CheckedOperator::call_and_watch_memory() {
  device::MemoryLog& log = device::MemoryLog::global();
  log.reset_peak();
  const std::int64_t live = log.live_bytes();
  const std::optional<std::uint64_t> resident = own_memory("VmRSS");
  const bool reset = reset_memory_peak();
  sets_.call(operation_.call, 0);
  const std::optional<std::uint64_t> peak = own_memory("VmHWM");
  peak_scratch_bytes_ = static_cast<double>(log.peak_bytes() - live);
  if (reset && resident && peak) call_rss_bytes_ = *peak > *resident ? static_cast<double>(*peak - *resident) : 0;
  if (peak)
    max_rss_bytes_ = static_cast<double>(*peak);  // before the oracle, because its memory does not belong to the
                                                  // implementation
}

// Our own buffers by their log, exact to the byte; and as a cross-check, the decrease of the driver's free memory,
// which shows an implementation that allocates past the log. A launch that failed is found here at the latest.
void CheckedOperator::call_and_watch_gpu_memory() {
  const device::Place place = device::place_of(stream_);
  device::synchronize(place);
  device::MemoryLog& log = device::MemoryLog::of(place);
  log.reset_peak();
  const std::int64_t live = log.live_bytes();
  const std::uint64_t free = device::memory_use(place).free;
  device::KernelWatch watch;
  sets_.call(operation_.call, 0);
  kernels_ = watch.seen();
  device::synchronize(place);
  peak_scratch_bytes_ = static_cast<double>(log.peak_bytes() - live);
  taken_bytes_ = static_cast<double>(free) - static_cast<double>(device::memory_use(place).free);
}

void tell_device_taken(CaseContext& context, double less) {
  if (less >= 0) return context.metric("device_taken_bytes", "B", less);
  context.missing_metric("device_taken_bytes", "B", "another process gave memory back to the GPU during the call");
}

// The largest tolerance so far. Of a GPU's that of the first call will do: those of others are nearly the same.
void CheckedOperator::widen(double& bound, const Expected& expected) const {
  std::vector<double> brought;
  if (expected.there.value != nullptr && bound == 0 && is_mine()) {
    brought.resize(static_cast<std::size_t>(expected.there.tolerances));
    device::copy_now(brought.data(), expected.there.tolerance, brought.size() * sizeof(double), stream_);
  }
  for (const std::vector<double>* tolerances : {&expected.tolerance, &std::as_const(brought)}) {
    for (const double tolerance : *tolerances) {
      if (std::isfinite(tolerance)) bound = std::max(bound, tolerance);
    }
  }
}

// What the oracle expects once it has seen the outputs, where one is wrong and integers may tie.
std::optional<std::vector<Expected>> CheckedOperator::ties_of(int set, const std::vector<Expected>& expected) const {
  if (!operation_.expect_ties) return std::nullopt;
  bool wrong = false;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    wrong = wrong || !compare_output(sets_.outputs(set)[i], expected[i], stream_).passed;
  }
  if (!wrong) return std::nullopt;
  const InputSets::OnHost here = sets_.on_host(set);
  return operation_.expect_ties(here.inputs, here.outputs);
}

// A record per output, "<kind>:<output>". Returns the first failure's text, empty when all passed.
std::string CheckedOperator::compare_outputs(int set, const std::vector<Expected>& unseen, const std::string& kind) {
  if (unseen.size() != operation_.outputs.size()) {
    throw Error(ErrorKind::internal, fmt::format("the oracle told of {} outputs, the operator has {}", unseen.size(),
                                                 operation_.outputs.size()));
  }
  const std::optional<std::vector<Expected>> tied = ties_of(set, unseen);
  const std::vector<Expected>& expected = tied ? *tied : unseen;
  std::string failure, not_judged;
  comparisons_.clear();
  const std::optional<std::string> changed = sets_.changed_inputs(set);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const check::Comparison comparison = compare_output(sets_.outputs(set)[i], expected[i], stream_);
    comparisons_.push_back(comparison);
    widen(bounds_[i], expected[i]);
    std::optional<std::string> misuse = sets_.misuse(set, i);
    if (!misuse) misuse = changed;
    const bool passed = comparison.passed && !misuse;
    const double unjudged = unjudged_part(sets_.outputs(set)[i], expected[i], comparison, stream_);
    const double judged = expected[i].fraction * (1 - unjudged);
    worst_[i].add(comparison, judged, output_name(i));
    tell_unjudged(i, unjudged);
    if (tied && passed) tell_ties(i, unseen[i], expected[i]);
    std::string message = comparison.describe(output_name(i));
    if (misuse) message = *misuse + "; " + message;
    if (!passed && failure.empty()) failure = message;
    if (passed && unjudged >= kMostUnjudged) {
      const std::string why = not_judged_text(i, unjudged);
      emit_not_compared(kind + ":" + output_name(i), why, judged);
      if (not_judged.empty()) not_judged = why;
    } else if (kind == "reference" || !passed) {
      emit_check(kind + ":" + output_name(i), passed, 1, comparison.worst_error, comparison.worst_tolerance, message,
                 judged);
    }
  }
  if (failure.empty() && !not_judged.empty()) throw Unsupported(not_judged);
  return failure;
}

void CheckedOperator::tell_unjudged(std::size_t output, double part) {
  if (part < kToldUnjudged) return;
  context_.warn(
      {{stats::WarningCode::elements_unjudged, context_.request().implementation, output_name(output), part}});
}

void CheckedOperator::tell_ties(std::size_t output, const Expected& unseen, const Expected& tied) {
  std::size_t differ = 0;
  for (std::size_t i = 0; i < tied.value.size(); ++i) {
    if (!std::isnan(unseen.value[i]) && tied.value[i] != unseen.value[i]) ++differ;
  }
  if (differ == 0) return;
  const double part = static_cast<double>(differ) / static_cast<double>(tied.value.size());
  context_.warn({{stats::WarningCode::ties_differ, context_.request().implementation, output_name(output), part}});
}

std::string CheckedOperator::not_judged_text(std::size_t output, double part) const {
  return fmt::format(
      "not judged: {:.0f} % of the elements of '{}' differ from the reference by more than rounding explains, and "
      "pass only because jumps, sums that cancel or large neighbours make their bounds as large as {:.3g}; expected "
      "less than {:.0f} %; try: arguments off the jumps and of a narrower range, or rtol and atol in the cases",
      100 * part, output_name(output), bounds_[output], 100 * kMostUnjudged);
}

// If there is no yardstick, or the naive kernel's own error is not finite, nothing was compared, and the record says
// so.
std::string CheckedOperator::compare_with_naive(const std::vector<Expected>& expected) {
  std::vector<double> naive;
  if (operation_.naive) {
    naive = naive_errors(operation_.naive, sets_.inputs(0), sets_.outputs(0), expected, stream_);
  }
  std::string failure;
  for (std::size_t i = 0; i < operation_.outputs.size(); ++i) {
    if (!is_half(operation_.outputs[i].dtype)) continue;
    const std::string_view dtype = to_string(operation_.outputs[i].dtype);
    if (!operation_.naive || !std::isfinite(naive.at(i))) {
      const std::string why = operation_.naive
                                  ? fmt::format("the naive kernel's largest error in {} is {}", dtype, naive.at(i))
                                  : fmt::format("there is no naive kernel in {} for this case", dtype);
      emit_not_compared("naive:" + output_name(i), fmt::format("{}: {}: not compared", output_name(i), why), 0);
      continue;
    }
    const double allowed = kHalfPrecisionFactor * naive.at(i);
    const double found = comparisons_[i].max_error;
    const bool passed = found <= allowed;
    const std::string message = fmt::format("{}: largest error {:.3g}, the naive kernel's in {} is {:.3g}",
                                            output_name(i), found, dtype, naive.at(i));
    if (!passed && failure.empty()) failure = message + ", at most twice that is allowed";
    emit_check("naive:" + output_name(i), passed, 1, found, allowed, message, expected[i].fraction);
  }
  return failure;
}

void CheckedOperator::emit_check(const std::string& name, bool passed, std::int64_t cases, double error,
                                 double tolerance, const std::string& message, double fraction) {
  CheckRecord record;
  record.name = name;
  record.outcome = passed ? Outcome::passed : Outcome::falsified;
  record.cases_run = cases;
  record.seed = std::to_string(context_.request().seed);
  record.message = message;
  if (std::isfinite(error)) record.worst_error = error;
  if (std::isfinite(tolerance)) record.tolerance = tolerance;
  record.fraction_checked = fraction;
  context_.emit(record);
}

void CheckedOperator::emit_not_compared(const std::string& name, const std::string& why, double fraction) {
  CheckRecord record;
  record.name = name;
  record.outcome = Outcome::not_run;
  record.seed = std::to_string(context_.request().seed);
  record.message = why;
  record.fraction_checked = fraction;
  context_.emit(record);
}

// The memory that input sets may take together: an eighth of the machine's, a quarter of the case's limit, 1 GiB,
// whichever is least; on a GPU a quarter of what is free, at most 8 GiB.
std::uint64_t CheckedOperator::memory_for_sets() const {
  if (stream_.kind == device::Kind::cuda) {
    return std::min(kMostGpuSetBytes, device::memory_use(device::place_of(stream_)).free / 4);
  }
  const auto pages = static_cast<std::uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
  std::uint64_t budget = std::min(kMostSetBytes, pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) / 8);
  if (const std::uint64_t limit = context_.request().memory_limit_bytes; limit > 0) {
    budget = std::min(budget, limit / 4);
  }
  return budget;
}

// Another process gets its inputs for one call at a time, copied to where it reads them: what it finds in the caches is
// decided there, and more sets than one would change nothing.
measure::CachePlan CheckedOperator::cache_plan() {
  if (!operation_.self_time || !is_mine()) {
    return measure::plan_caches(protocol_, device_, sets_.bytes_per_set(), memory_for_sets());
  }
  const bool wanted = protocol_.cache != measure::Cache::hot;
  const bool cold = context_.serve_cold(wanted) && wanted;
  const char* const by = context_.request().device == DeviceKind::cpu ? "eviction" : "flush";
  measure::CachePlan plan{.sets = 1, .flush_bytes = 0, .state = cold ? "cold" : "hot", .by = cold ? by : ""};
  if (protocol_.cache == measure::Cache::flush) plan.flush_bytes = protocol_.flush_bytes;
  return plan;
}

measure::Subject CheckedOperator::subject() {
  caches_ = cache_plan();
  sets_.grow(caches_.sets);
  sets_.refresh(0);  // the check used it
  measure::Subject subject;
  subject.sets = sets_.count();
  subject.flush_bytes = caches_.flush_bytes;
  subject.call = [this](int set) { sets_.call(operation_.call, set); };
  // If host time is not measured, a profiler range names the implementation.
  if (stream_.kind == device::Kind::cuda) {
    subject.call = [this](int set) {
      const device::NvtxRange range(context_.request().implementation);
      sets_.call(operation_.call, set);
    };
  }
  subject.refresh = [this](int set) { sets_.refresh(set); };
  subject.grow = [this](int wanted) { return grow(wanted); };
  subject.look = [this](std::span<const int> sets) { look(sets); };
  subject.verify = [this](int set) { return has_time_to_verify() && verify(set); };
  subject.verify_anyway = [this](int set) { return verify(set); };
  if (must_compare_all()) {
    subject.verify_share = 1;
    subject.verify = subject.verify_anyway;
  }
  begin_series();
  subject.self_time = operation_.self_time;
  if (operation_.self_time && is_mine()) subject.self_state = [this] { return context_.last_window(); };
  subject.self_graphs = operation_.self_time && protocol_.launch == measure::Launch::graph;
  return subject;
}

// Of what is hot, no more than the caches can keep beside what the implementation takes for itself.
int CheckedOperator::grow(int wanted) {
  const std::uint64_t room =
      protocol_.cache == measure::Cache::hot
          ? device_.last_level_cache() / 2
          : memory_for_sets() + sets_.bytes_per_set() * static_cast<std::uint64_t>(sets_.count());
  const std::uint64_t most =
      std::clamp<std::uint64_t>(room / std::max<std::uint64_t>(sets_.bytes_per_set(), 1), 1, kMostHotSets);
  sets_.grow(std::min(wanted, static_cast<int>(most)));
  return sets_.count();
}

bool CheckedOperator::is_mine() const { return context_.request().mine.has_value(); }

// Of what may want to be believed without work, where there is nothing cheaper than the oracle. On a GPU the protocol's
// share has to do: of large tensors an oracle takes a hundred times as long as a call.
bool CheckedOperator::must_compare_all() const {
  return is_mine() && !operation_.glimpse && context_.request().device == DeviceKind::cpu;
}

void CheckedOperator::begin_series() {
  verified_ = looked_at_ = 0;
  began_ = measure::steady_clock().now();
}

// The first call that is drawn is always compared; after that a slow oracle gets a share of the time as it passes.
bool CheckedOperator::has_time_to_verify() const {
  const double budget = kVerificationShare * Seconds(measure::steady_clock().now() - began_).count();
  return verified_ == 0 || Seconds(oracle_time_).count() * static_cast<double>(verified_ + 1) <= budget;
}

// All that compare_outputs() demands, by tolerances that are at most as wide. It accuses nobody, and what it finds is
// no worst error: that is of whole bounds.
bool CheckedOperator::is_surely_right(int set) {
  if (!operation_.expect_narrowly || stream_.kind != device::Kind::cpu) return false;
  const std::vector<Expected> expected = operation_.expect_narrowly(sets_.inputs(set));
  if (expected.size() != operation_.outputs.size() || sets_.changed_inputs(set)) return false;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (sets_.misuse(set, i)) return false;
    const check::Comparison comparison = compare_output(sets_.outputs(set)[i], expected[i], stream_);
    if (!comparison.passed) return false;
    if (unjudged_part(sets_.outputs(set)[i], expected[i], comparison, stream_) >= kToldUnjudged) return false;
  }
  return true;
}

// A timed call's outputs against the oracle of that call's inputs.
bool CheckedOperator::verify(int set) {
  const device::NvtxRange range("verify");
  ++verified_;
  if (is_surely_right(set)) return true;
  const std::string failure = compare_outputs(set, sets_.expect(set), "sample");
  if (!failure.empty()) fail_sample(failure);
  return true;
}

void CheckedOperator::fail_sample(const std::string& failure) {
  throw CheckFailed("a timed sample is wrong though the first call was right: " + failure);
}

void CheckedOperator::look(std::span<const int> sets) {
  const device::NvtxRange range("look");
  looked_at_ += static_cast<std::int64_t>(sets.size());
  if (const int set = sets_.first_with_nans(sets); set >= 0) {
    for (std::size_t i = 0; i < operation_.outputs.size(); ++i) {
      const std::optional<std::string> misuse = sets_.misuse(set, i);
      if (!misuse) continue;
      emit_check("sample:" + output_name(i), false, 1, NAN, NAN, *misuse, 1);
      fail_sample(*misuse);
    }
  }
  if (!is_mine() || !operation_.glimpse) return;
  for (const int set : sets) glance(set);
}

void CheckedOperator::glance(int set) {
  const InputSets::OnHost here = sets_.on_host(set);
  for (const Glimpse& glimpse : operation_.glimpse(here.inputs, here.outputs, chance_())) {
    const std::optional<Far> far = far_from(here.outputs[glimpse.output], glimpse, bounds_[glimpse.output]);
    if (!far) continue;
    const std::string failure = what_the_oracle_says(set, here.inputs, glimpse.output, *far);
    if (!failure.empty()) fail_sample(failure);
  }
}

// A glimpse accuses nobody but where the oracle keeps silent: it computes a part of a large output, and this element
// may be in none of its parts.
std::string CheckedOperator::what_the_oracle_says(int set, const Inputs& inputs, std::size_t output, const Far& far) {
  constexpr double kFarBeyondDoubt = 16;  // bounds
  const bool there = stream_.kind == device::Kind::cuda && operation_.expect_there;
  const std::vector<Expected> expected = there ? sets_.expect(set)
                                         : operation_.expect_around
                                             ? operation_.expect_around(inputs, output, far.element)
                                             : operation_.expect(inputs);
  std::string failure = compare_outputs(set, expected, "sample");
  const bool asked = there || !std::isnan(expected[output].value.at(static_cast<std::size_t>(far.element)));
  const double error = std::abs(far.found - far.near_to), bound = kFarBeyondDoubt * bounds_[output];
  if (!failure.empty() || asked || error <= bound) return failure;
  failure = fmt::format("{}: element {} is {:.6g}, and the lab's own kernel finds {:.6g}; {:.3g} apart is beyond doubt",
                        output_name(output), far.element, far.found, far.near_to, bound);
  emit_check("sample:" + output_name(output), false, 1, error, bound, failure, 1);
  return failure;
}

void CheckedOperator::emit_verified(const std::string& series) {
  const std::string rows = is_mine() && operation_.glimpse ? ", rows of all of them with the lab's own" : "";
  for (std::size_t i = 0; i < operation_.outputs.size(); ++i) {
    emit_check(series + ":" + output_name(i), true, verified_, worst_[i].error, worst_[i].tolerance,
               fmt::format("{} of {} timed calls compared whole{}, none left anything unwritten; worst: {}", verified_,
                           looked_at_, rows, worst_[i].text),
               worst_[i].fraction);
  }
}

void CheckedOperator::emit_metrics() {
  for (std::size_t i = 0; i < operation_.outputs.size(); ++i) {
    context_.metric("error_" + output_name(i), "1", worst_[i].error);
    context_.metric("tolerance_" + output_name(i), "1", worst_[i].tolerance);
  }
  context_.metric("peak_scratch_bytes", "B", peak_scratch_bytes_);
  context_.metric("peak_bytes", "B", static_cast<double>(sets_.bytes_per_set()) + peak_scratch_bytes_);
  if (taken_bytes_) {
    tell_device_taken(context_, *taken_bytes_);
    return;
  }
  if (operation_.self_time) {
    for (const char* name : {"call_rss_bytes", "max_rss_bytes"}) {
      context_.missing_metric(name, "B", "the implementation takes its memory in another process");
    }
    return;
  }
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

Json CheckedOperator::facts() const {
  Json facts{{"input_sets", sets_.count()},
             {"rotated_bytes", sets_.bytes_per_set() * static_cast<std::uint64_t>(sets_.count())},
             {"last_level_cache_bytes", device_.last_level_cache()},
             {"cache", caches_.state},
             {"data", context_.request().data}};
  if (!caches_.by.empty()) facts["cache_by"] = caches_.by;
  if (caches_.flush_bytes > 0) facts["flush_bytes"] = caches_.flush_bytes;
  for (const device::KernelResources& kernel : kernels_) {
    facts["kernels"].push_back({{"name", kernel.name},
                                {"threads", kernel.threads},
                                {"registers", kernel.registers},
                                {"shared_bytes", kernel.shared_bytes},
                                {"local_bytes", kernel.local_bytes},
                                {"blocks", kernel.blocks},
                                {"occupancy", kernel.occupancy()}});
  }
  return facts;
}

DType CheckedOperator::narrowest() const {
  DType narrowest = DType::f64;
  for (const std::vector<TensorSpec>* tensors : {&operation_.inputs, &operation_.outputs}) {
    for (const TensorSpec& tensor : *tensors) {
      if (size_of(tensor.dtype) < size_of(narrowest)) narrowest = tensor.dtype;
    }
  }
  return narrowest;
}

Json CheckedOperator::floor_facts(const measure::Peaks& peaks, double seconds) const {
  const measure::NeededWork work{.flops = operation_.flops,
                                 .bytes = operation_.bytes,
                                 .cold = caches_.state == "cold",
                                 .last_level_cache_bytes = device_.last_level_cache()};
  const std::optional<measure::Floor> floor = measure::floor_of(work, peaks);
  if (!floor) return Json::object();
  Json facts{{"floor", {{"seconds", floor->seconds}, {"by", floor->arithmetic}}}};
  if (const auto why = measure::below_floor(seconds, *floor)) facts["suspect"] = *why;
  return facts;
}

}  // namespace syslab::worker
