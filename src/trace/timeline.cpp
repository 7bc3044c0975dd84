#include "trace/timeline.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/text/json.hpp"
#include "core/text/json_text.hpp"

namespace syslab::trace {
namespace {

constexpr int kProcess = 1;
constexpr int kHost = 1;  // thread of the host's spans; streams follow

double microseconds(Nanoseconds time) { return static_cast<double>(time.count()) * 1e-3; }

Json named(const char* what, int thread, const std::string& name) {
  return {{"ph", "M"}, {"pid", kProcess}, {"tid", thread}, {"name", what}, {"args", {{"name", name}}}};
}

class Writer {
 public:
  Writer(const Trace& trace, const TimelineOptions& options, const std::vector<MemorySample>& memory)
      : trace_(trace), options_(options), memory_(memory), activities_(attribute(trace, options.first)) {
    origin_ = Nanoseconds(std::numeric_limits<std::int64_t>::max());
    for (std::size_t i = options.first; i < trace.spans.size(); ++i) {
      origin_ = std::min(origin_, trace.spans[i].begin);
    }
    for (const Attributed& one : activities_) origin_ = std::min(origin_, one.activity->begin);
    for (const MemorySample& sample : memory) origin_ = std::min(origin_, sample.at);
  }

  std::string write() {
    events_.push_back(named("process_name", 0, options_.title.empty() ? "syslab" : options_.title));
    events_.push_back(named("thread_name", kHost, "host"));
    for (std::size_t i = options_.first; i < trace_.spans.size(); ++i) add(trace_.spans[i]);
    for (const Attributed& one : activities_) {
      if (one.activity->track != kHostTrack) add(one);  // those are spans, and stand there as such
    }
    for (const MemorySample& sample : memory_) add(sample);
    Json whole{{"traceEvents", std::move(events_)},
               {"displayTimeUnit", "ns"},
               {"otherData", {{"activities_from", trace_.source}, {"lost", trace_.lost}}}};
    if (!trace_.why.empty()) whole["otherData"]["why"] = trace_.why;
    return repaired_json_text(whole);
  }

 private:
  Json complete(int thread, const std::string& name, std::string_view category, Nanoseconds begin, Nanoseconds end) {
    return {{"ph", "X"},
            {"pid", kProcess},
            {"tid", thread},
            {"name", name},
            {"cat", category},
            {"ts", microseconds(begin - origin_)},
            {"dur", microseconds(end - begin)}};
  }

  void add(const Span& span) {
    Json event = complete(kHost, span.name, to_string(span.kind), span.begin, span.end);
    if (!span.kernel.empty()) event["args"] = {{"by", span.kernel}};
    events_.push_back(std::move(event));
  }

  void add(const Attributed& one) {
    const Activity& activity = *one.activity;
    Json event =
        complete(thread_of(activity.track), activity.name, to_string(activity.kind), activity.begin, activity.end);
    Json& arguments = event["args"] = Json::object();
    const auto tell = [&](const char* key, const std::string& value) {
      if (!value.empty()) arguments[key] = value;
    };
    tell("phase", one.belongs.phase);
    tell("layer", one.belongs.layer);
    tell("part", one.belongs.part);
    tell("operation", one.belongs.operation);
    if (activity.bytes > 0) arguments["bytes"] = activity.bytes;
    events_.push_back(std::move(event));
  }

  void add(const MemorySample& sample) {
    Json live = Json::object();
    for (const auto& [category, bytes] : sample.live) live[category] = bytes;
    events_.push_back({{"ph", "C"},
                       {"pid", kProcess},
                       {"tid", 0},
                       {"name", "live bytes"},
                       {"ts", microseconds(sample.at - origin_)},
                       {"args", std::move(live)}});
  }

  // Tracks get thread numbers in order of appearance, and their names with the first event.
  int thread_of(const std::string& track) {
    const auto known = threads_.find(track);
    if (known != threads_.end()) return known->second;
    const int thread = kHost + 1 + static_cast<int>(threads_.size());
    threads_.emplace(track, thread);
    events_.push_back(named("thread_name", thread, track));
    return thread;
  }

  const Trace& trace_;
  const TimelineOptions& options_;
  const std::vector<MemorySample>& memory_;
  std::vector<Attributed> activities_;
  Nanoseconds origin_{};
  std::map<std::string, int> threads_;
  Json events_ = Json::array();
};

}  // namespace

std::string timeline_json(const Trace& trace, const TimelineOptions& options, const std::vector<MemorySample>& memory) {
  return Writer(trace, options, memory).write();
}

}  // namespace syslab::trace
