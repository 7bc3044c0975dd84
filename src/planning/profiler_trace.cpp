#include "planning/profiler_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
constexpr std::string_view kBackwardOf = "autograd::engine::evaluate_function";
constexpr std::string_view kStep = "ProfilerStep#";

std::string text(const Json& event, const char* field) {
  const auto found = event.find(field);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}

double number(const Json& event, const char* field) {
  const auto found = event.find(field);
  return found != event.end() && found->is_number() ? found->get<double>() : 0;
}

bool is_launch(const std::string& category) { return category == "cuda_runtime" || category == "cuda_driver"; }

bool is_wanted(const Json& event) {
  const std::string name = text(event, "name"), category = text(event, "cat");
  return name == "backward" || category == "gradient" || name == kAccumulate || name.starts_with(kBackwardOf) ||
         name.starts_with(kStep) || category == "kernel" || is_launch(category);
}

// Microseconds, as the format counts.
struct Interval {
  double begin = 0, end = 0;
  bool holds(double time) const { return begin <= time && time <= end; }
};

Interval interval_of(const Json& event) {
  const double begin = number(event, "ts");
  return {begin, begin + number(event, "dur")};
}

Seconds seconds(double microseconds) { return Seconds(1e-6 * microseconds); }

// Events "gradient" inside "backward".
std::vector<GradientRecord> marked(const Json& events) {
  std::vector<Interval> passes;
  for (const Json& event : events) {
    if (text(event, "name") == "backward" && text(event, "ph") == "X") passes.push_back(interval_of(event));
  }
  std::ranges::sort(passes, {}, &Interval::begin);
  std::vector<GradientRecord> records;
  for (const Json& event : events) {
    if (text(event, "cat") != "gradient") continue;
    const double end = interval_of(event).end;
    const auto pass = std::ranges::find_if(passes, [&](const Interval& it) { return it.holds(end); });
    const std::string name = text(event, "name");
    if (pass == passes.end()) {
      throw Error(ErrorKind::usage,
                  fmt::format("gradient '{}' at {} us ends in no event named 'backward' (ph X, with ts and dur): where "
                              "does its backward pass begin?",
                              name, end));
    }
    const auto args = event.find("args");
    GradientRecord record;
    record.step = pass - passes.begin();
    record.name = name;
    record.bytes = args == event.end() ? 0 : static_cast<std::int64_t>(number(*args, "bytes"));
    record.ready = seconds(end - pass->begin);
    records.push_back(std::move(record));
  }
  return records;
}

// When all kernels that had been launched by some time of the host had ended.
class Kernels {
 public:
  explicit Kernels(const Json& events) {
    std::map<std::int64_t, Interval> kernels;  // of one launch from the first to the last: a graph's are many
    for (const Json& event : events) {
      if (text(event, "cat") != "kernel" || text(event, "name").starts_with("nccl")) continue;
      const auto id = correlation(event);
      if (!id) continue;
      const Interval one = interval_of(event);
      Interval& all = kernels.try_emplace(*id, one).first->second;
      all = {std::min(all.begin, one.begin), std::max(all.end, one.end)};
    }
    for (const Json& event : events) {
      if (!is_launch(text(event, "cat"))) continue;
      const auto id = correlation(event);
      const auto kernel = id ? kernels.find(*id) : kernels.end();
      if (kernel != kernels.end()) launches_.push_back({number(event, "ts"), kernel->second});
    }
    std::ranges::sort(launches_, {}, &Launch::at);
  }

  bool empty() const { return launches_.empty(); }

  std::optional<double> first_begin(double from) const {
    const auto at = std::ranges::lower_bound(launches_, from, {}, &Launch::at);
    return at == launches_.end() ? std::nullopt : std::optional(at->kernel.begin);
  }
  // Of the kernels launched from `from` to `to`.
  std::optional<double> last_end(double from, double to) const {
    std::optional<double> last;
    for (auto at = std::ranges::lower_bound(launches_, from, {}, &Launch::at); at != launches_.end() && at->at <= to;
         ++at) {
      last = std::max(last.value_or(at->kernel.end), at->kernel.end);
    }
    return last;
  }

 private:
  struct Launch {
    double at = 0;
    Interval kernel;
  };

  static std::optional<std::int64_t> correlation(const Json& event) {
    const auto args = event.find("args");
    if (args == event.end() || !args->contains("correlation")) return std::nullopt;
    const double said = number(*args, "correlation");
    return std::abs(said) < 0x1p53 ? std::optional(static_cast<std::int64_t>(said)) : std::nullopt;
  }

  std::vector<Launch> launches_;
};

std::int64_t bytes_of(const Json& event) {
  static const std::map<std::string, std::int64_t, std::less<>> sizes{
      {"float", 4}, {"double", 8}, {"c10::Half", 2}, {"c10::BFloat16", 2}};
  // The first element of a list in `args`; null where there is none.
  const auto first_of = [&](const char* name) {
    const Json args = event.value("args", Json());
    const Json list = args.is_object() ? args.value(name, Json()) : Json();
    return list.is_array() && !list.empty() ? list[0] : Json();
  };
  const Json dims = first_of("Input Dims"), type = first_of("Input type");
  if (!dims.is_array() || !type.is_string()) {
    throw Error(ErrorKind::usage,
                "the profiler's AccumulateGrad operations have no shapes: record with profile(…, record_shapes=True)");
  }
  const auto size = sizes.find(type.get<std::string>());
  if (size == sizes.end()) {
    throw Error(ErrorKind::usage,
                fmt::format("a gradient of type '{}' in the trace: known are float, double, c10::Half "
                            "and c10::BFloat16",
                            type.get<std::string>()));
  }
  std::int64_t bytes = size->second;
  for (const Json& dim : dims) {
    const std::int64_t size_of_dim = dim.is_number_integer() ? dim.get<std::int64_t>() : 0;
    if (size_of_dim < 0 || __builtin_mul_overflow(bytes, size_of_dim, &bytes)) {
      throw Error(ErrorKind::usage,
                  "a gradient in the trace has a shape that no memory holds: more than 2^63 bytes, or fewer than none");
    }
  }
  return bytes;
}

// PyTorch identifies a gradient only by its shape and its order.
std::vector<GradientRecord> accumulated(const Json& events, bool& on_gpu) {
  std::vector<Interval> steps;
  for (const Json& event : events) {
    if (text(event, "name").starts_with(kStep) && text(event, "cat") != "gpu_user_annotation") {
      steps.push_back(interval_of(event));
    }
  }
  std::ranges::sort(steps, {}, &Interval::begin);
  if (steps.empty()) steps.push_back({0, std::numeric_limits<double>::max()});
  const Kernels kernels(events);
  on_gpu = !kernels.empty();

  std::vector<GradientRecord> records;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    double begin = std::numeric_limits<double>::max();
    std::vector<std::pair<double, const Json*>> operations;  // by their ends
    for (const Json& event : events) {
      const std::string name = text(event, "name");
      const Interval at = interval_of(event);
      if (!steps[step].holds(at.begin)) continue;
      if (name.starts_with(kBackwardOf) || name == kAccumulate) begin = std::min(begin, at.begin);
      if (name == kAccumulate) operations.emplace_back(at.end, &event);
    }
    std::ranges::sort(operations, {}, [](const auto& one) { return one.first; });
    const double origin = on_gpu ? kernels.first_begin(begin).value_or(begin) : begin;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const auto& [end, event] = operations[i];
      const double ready = on_gpu ? kernels.last_end(begin, end).value_or(origin) : end;
      const std::int64_t bytes = bytes_of(*event);
      records.push_back({static_cast<std::int64_t>(step), fmt::format("gradient {} ({} B)", i, bytes), bytes,
                         seconds(ready - origin)});
    }
  }
  return records;
}

}  // namespace

Json parse_events(std::string_view content) {
  const Json::parser_callback_t keep = [](int, Json::parse_event_t what, Json& parsed) {
    if (what != Json::parse_event_t::object_end || !parsed.contains("ph")) return true;
    return is_wanted(parsed);
  };
  return Json::parse(content, keep, false);
}

std::vector<GradientRecord> gradients_of_events(const Json& events, std::string& from) {
  from = "a Chrome trace";
  std::vector<GradientRecord> records = marked(events);
  if (!records.empty()) return records;
  bool on_gpu = false;
  records = accumulated(events, on_gpu);
  from =
      on_gpu ? "a trace of PyTorch's profiler, by its kernels" : "a trace of PyTorch's profiler, by the host's times";
  if (records.empty()) {
    throw Error(ErrorKind::usage,
                "the trace has neither events of category 'gradient' nor PyTorch's AccumulateGrad operations: was a "
                "backward pass recorded?");
  }
  return records;
}

}  // namespace syslab::parallel
