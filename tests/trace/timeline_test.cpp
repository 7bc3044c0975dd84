// Holds a timeline against the rules of the Trace Event Format (Google's document of that name, sections "JSON Object
// Format", "Duration / Complete / Counter / Metadata Events"), and against what Perfetto's importer refuses:
//
//   1. the file is one JSON object whose "traceEvents" is a list of objects
//   2. every event has "ph" (one letter), "pid" and "tid" (integers) and "name" (text)
//   3. every event but metadata ("M") has "ts": a finite number of microseconds
//   4. a complete event ("X") has "dur", a finite number ≥ 0, and a text "cat" without the separator ','
//   5. complete events of one thread nest: two of them either lie one in the other or apart
//   6. a counter ("C") has "args", an object of nothing but numbers
//   7. metadata is process_name or thread_name with args.name, a text; every thread that has events has a name
//   8. "displayTimeUnit" is "ms" or "ns"
#include "trace/timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text/json.hpp"

namespace syslab::trace {
namespace {

using device::RangeKind;

struct Interval {
  double begin = 0, end = 0;
};

bool nest(std::vector<Interval> all) {
  // Outer ones first where they begin together.
  std::ranges::sort(
      all, [](const Interval& a, const Interval& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  std::vector<Interval> open;
  constexpr double kRounding = 1e-6;  // of sums of doubles; a nanosecond is 1e-3
  for (const Interval& one : all) {
    while (!open.empty() && open.back().end <= one.begin + kRounding) open.pop_back();
    if (!open.empty() && one.end > open.back().end + kRounding) return false;
    open.push_back(one);
  }
  return true;
}

// The first rule that the text breaks; empty: none.
std::string broken_rule(const std::string& text) {
  const Json whole = Json::parse(text, nullptr, false);
  if (!whole.is_object() || !whole.contains("traceEvents") || !whole["traceEvents"].is_array()) return "1";
  const auto is_number = [](const Json& event, const char* key) {
    return event.contains(key) && event[key].is_number() && std::isfinite(event[key].get<double>());
  };
  std::map<std::int64_t, std::vector<Interval>> complete;
  std::set<std::int64_t> named, used;
  for (const Json& event : whole["traceEvents"]) {
    if (!event.is_object()) return "1";
    const auto is = [&](const char* key, bool (Json::*type)() const noexcept) {
      return event.contains(key) && (event[key].*type)();
    };
    if (!is("ph", &Json::is_string) || event["ph"].get<std::string>().size() != 1) return "2";
    if (!is("pid", &Json::is_number_integer) || !is("tid", &Json::is_number_integer)) return "2";
    if (!is("name", &Json::is_string)) return "2";
    const std::string ph = event["ph"];
    const auto thread = event["tid"].get<std::int64_t>();
    if (ph != "M" && !is_number(event, "ts")) return "3";
    if (ph == "X") {
      if (!is_number(event, "dur") || event["dur"].get<double>() < 0) return "4";
      if (!is("cat", &Json::is_string) || event["cat"].get<std::string>().find(',') != std::string::npos) return "4";
      const double begin = event["ts"];
      complete[thread].push_back({begin, begin + event["dur"].get<double>()});
      used.insert(thread);
    } else if (ph == "C") {
      if (!is("args", &Json::is_object)) return "6";
      for (const Json& value : event["args"]) {
        if (!value.is_number()) return "6";
      }
    } else if (ph == "M") {
      const std::string name = event["name"];
      if (name != "process_name" && name != "thread_name") return "7";
      if (!is("args", &Json::is_object) || !event["args"].contains("name") || !event["args"]["name"].is_string()) {
        return "7";
      }
      if (name == "thread_name") named.insert(thread);
    } else {
      return "2";
    }
  }
  for (const auto& [thread, intervals] : complete) {
    if (!nest(intervals)) return "5";
  }
  if (!std::ranges::includes(named, used)) return "7";
  const std::string unit = whole.value("displayTimeUnit", "ms");
  if (unit != "ms" && unit != "ns") return "8";
  return {};
}

Nanoseconds at_ns(std::int64_t count) { return Nanoseconds(count); }

Trace a_trace() {
  Trace trace;
  trace.source = "CUPTI";
  trace.spans = {
      {.name = "warm-up", .begin = at_ns(1'000), .end = at_ns(2'000)},
      {.name = "forward", .kind = RangeKind::phase, .begin = at_ns(5'000'000'000'100), .end = at_ns(5'000'000'009'100)},
      {.name = "layers.0",
       .kind = RangeKind::layer,
       .parent = 1,
       .begin = at_ns(5'000'000'000'200),
       .end = at_ns(5'000'000'008'000)},
      {.name = "gemm",
       .kind = RangeKind::kernel,
       .kernel = "cuBLAS",
       .parent = 2,
       .begin = at_ns(5'000'000'000'300),
       .end = at_ns(5'000'000'001'000),
       .on_device = true}};
  trace.activities = {{.name = "sgemm<float>",
                       .track = "stream 7",
                       .begin = at_ns(5'000'000'004'000),
                       .end = at_ns(5'000'000'005'500),
                       .span = 3},
                      {.kind = ActivityKind::copy,
                       .name = "host to device",
                       .track = "stream 8",
                       .begin = at_ns(5'000'000'004'100),
                       .end = at_ns(5'000'000'004'200),
                       .span = 2,
                       .bytes = 4096}};
  return trace;
}

Json event_named(const std::string& text, const std::string& name) {
  const Json whole = Json::parse(text);
  for (const Json& event : whole["traceEvents"]) {
    if (event["name"] == name) return event;
  }
  return {};
}

TEST(Timeline, KeepsTheRulesOfTheTraceEventFormat) {
  const std::string text =
      timeline_json(a_trace(), {.title = "small"}, {{at_ns(5'000'000'000'100), {{"parameter", 1024}}}});
  EXPECT_EQ(broken_rule(text), "") << text;
}

TEST(Timeline, TimesAreMicrosecondsFromTheFirstThatIsShown) {
  const std::string text = timeline_json(a_trace(), {.first = 1});
  EXPECT_EQ(event_named(text, "warm-up"), Json());
  EXPECT_DOUBLE_EQ(event_named(text, "forward")["ts"], 0.0);
  EXPECT_DOUBLE_EQ(event_named(text, "forward")["dur"], 9.0);
  EXPECT_DOUBLE_EQ(event_named(text, "sgemm<float>")["ts"], 3.9);
  EXPECT_DOUBLE_EQ(event_named(text, "sgemm<float>")["dur"], 1.5);
}

TEST(Timeline, KernelsSayWhereTheyBelong) {
  const Json kernel = event_named(timeline_json(a_trace(), {.first = 1}), "sgemm<float>");
  EXPECT_EQ(kernel["args"]["phase"], "forward");
  EXPECT_EQ(kernel["args"]["layer"], "layers.0");
  EXPECT_EQ(kernel["args"]["operation"], "gemm");
  EXPECT_EQ(event_named(timeline_json(a_trace(), {.first = 1}), "host to device")["args"]["bytes"], 4096);
}

TEST(Timeline, EveryStreamIsALaneWithItsName) {
  const Json whole = Json::parse(timeline_json(a_trace(), {}));
  std::set<std::string> lanes;
  for (const Json& event : whole["traceEvents"]) {
    if (event["name"] == "thread_name") lanes.insert(event["args"]["name"].get<std::string>());
  }
  EXPECT_EQ(lanes, (std::set<std::string>{"host", "stream 7", "stream 8"}));
}

TEST(Timeline, CallsOnTheCpuAreShownOnceAsSpans) {
  Trace trace = a_trace();
  trace.spans[3].on_device = false;
  trace.activities = host_activities(trace.spans);
  ASSERT_EQ(trace.activities.size(), 1U);
  const std::string text = timeline_json(trace, {});
  EXPECT_EQ(broken_rule(text), "");
  EXPECT_EQ(event_named(text, "cuBLAS"), Json()) << "as an activity";
  EXPECT_EQ(event_named(text, "gemm")["args"]["by"], "cuBLAS");
}

TEST(Timeline, ANameThatIsNoTextOfUtf8DoesNotBreakTheFile) {
  Trace trace = a_trace();
  trace.spans[1].name = "f\xff\"\n";
  EXPECT_EQ(broken_rule(timeline_json(trace, {.title = "\xc3"})), "");
}

TEST(Timeline, SaysWhereItsKernelsComeFromAndWhyNotFromTheBestSource) {
  Trace trace = a_trace();
  trace.source = "events";
  trace.why = "another profiler is at work";
  const Json whole = Json::parse(timeline_json(trace, {}));
  EXPECT_EQ(whole["otherData"]["activities_from"], "events");
  EXPECT_EQ(whole["otherData"]["why"], "another profiler is at work");
}

// The rules above would be worth nothing if they found nothing.
TEST(TraceEventRules, FindWhatIsBroken) {
  const auto with = [](const std::string& event) { return R"({"traceEvents":[)" + event + "]}"; };
  const std::string lane = R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"host"}})";
  EXPECT_EQ(broken_rule("[]"), "1");
  EXPECT_EQ(broken_rule(with(R"({"ph":"X","pid":1,"tid":"a","name":"x","cat":"c","ts":0,"dur":1})")), "2");
  EXPECT_EQ(broken_rule(with(R"({"ph":"X","pid":1,"tid":1,"name":"x","cat":"c","dur":1})")), "3");
  EXPECT_EQ(broken_rule(with(R"({"ph":"X","pid":1,"tid":1,"name":"x","cat":"c","ts":0,"dur":-1})")), "4");
  EXPECT_EQ(broken_rule(with(R"({"ph":"C","pid":1,"tid":0,"name":"x","ts":0,"args":{"a":"1"}})")), "6");
  EXPECT_EQ(broken_rule(with(R"({"ph":"X","pid":1,"tid":1,"name":"x","cat":"c","ts":0,"dur":1})")), "7");
  EXPECT_EQ(broken_rule(with(lane + R"(,{"ph":"X","pid":1,"tid":1,"name":"x","cat":"c","ts":0,"dur":2})" +
                             R"(,{"ph":"X","pid":1,"tid":1,"name":"y","cat":"c","ts":1,"dur":2})")),
            "5");
  EXPECT_EQ(broken_rule(R"({"traceEvents":[],"displayTimeUnit":"s"})"), "8");
}

}  // namespace
}  // namespace syslab::trace
