// How to measure, as data. A protocol is stored with every run and every attempt as JSON, so a table can print any
// field of it. docs/how-we-measure.md shows them side by side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"
#include "core/text/units.hpp"

namespace syslab::measure {

// What a timed call finds in the caches.
enum class Cache {
  rotate,  // nothing of its inputs: they were last touched a rotation over more than twice the last-level cache ago
  flush,   // nothing: `flush_bytes` are written before each sample
  hot      // one input set, just written; whatever fits is there
};
// How the calls of a sample reach the device.
enum class Launch {
  direct,             // one after the other
  graph_if_possible,  // a sample of several calls as one captured graph, where the device and the work allow it
  graph               // always captured; a device that captures no graphs makes the case `unsupported`
};

// Of what all of them promise, stored with each. Times under different versions are not compared. 2: every timed call
// meets content of its own and is looked at; a third of the calls are compared whole; another process finds the caches
// as the protocol says.
inline constexpr int kMeasuringVersion = 2;

struct Protocol {
  std::string name = "kernel";
  std::string summary = "cold caches, until the median is known to 0.5 %";

  // Warm-up. With estimate_calls > 0 the counts come from times, as Triton's do_bench has it: one call, then
  // estimate_calls of them timed together, flushes included; warmup_time and repeat_time divided by that estimate are
  // the calls of warm-up and the samples, each at least one. Otherwise:
  int warmup_calls = 3;                                      // at least
  Nanoseconds warmup_time = std::chrono::milliseconds(200);  // in calls, at least
  Nanoseconds warmup_limit = std::chrono::seconds(2);        // by the clock on the wall, at most; 0: none
  bool warmup_until_steady = true;                           // last 8 calls' median within 1 % of the 8 before
  int estimate_calls = 0;
  Nanoseconds repeat_time{};

  // A sample.
  Nanoseconds sample_floor = std::chrono::microseconds(200);  // shorter calls are grouped into one; 0: never grouped
  int block = 16;  // samples queued between two waits for the device, as far as it and the input sets allow
  Cache cache = Cache::rotate;
  std::uint64_t flush_bytes = 0;  // of Cache::flush; 0: twice the last-level cache
  Launch launch = Launch::graph_if_possible;
  double verify_share = 1.0 / 3;  // of timed calls, chosen at random, at least one: their outputs are compared whole

  // When it is enough: the first that holds. A look at the precision is taken at min_samples and whenever there are
  // half as many again.
  int min_samples = 20;
  int max_samples = 2000;
  double precision = 0.005;                             // half-width of the median's 95 % interval, relative; 0: never
  Nanoseconds device_budget = std::chrono::seconds(3);  // in windows; 0: none
  // Without looking at outputs, which ends it after as long, with min_samples; 0: none.
  Nanoseconds wall_budget = std::chrono::seconds(10);

  // Between looks, when the device has slowed its clock.
  Nanoseconds cool_down = std::chrono::milliseconds(250);  // a pause; 0: never
  Nanoseconds cool_down_limit = std::chrono::seconds(2);   // all pauses of a case

  int launches = 1;                              // fresh processes an attempt
  std::vector<std::string> headline = {"time"};  // metrics to quote; "time" is the median
};

// All of them, the default first.
std::span<const Protocol> protocols();
// Error(usage) with the names there are.
Protocol find_protocol(std::string_view name);
Json to_json(const Protocol& protocol);

}  // namespace syslab::measure
