// How to measure, as data. A protocol is stored with every run as JSON, so a table can print any field of it.
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"
#include "core/units.hpp"

namespace syslab::measure {

struct Protocol {
  std::string name = "kernel";
  int warmup_calls = 3;                                       // at least
  Nanoseconds warmup_time = std::chrono::milliseconds(200);   // at least
  Nanoseconds warmup_limit = std::chrono::seconds(2);         // at most
  bool warmup_until_steady = true;                            // last 8 calls' median within 1 % of the 8 before
  Nanoseconds sample_floor = std::chrono::microseconds(200);  // shorter calls are grouped into one sample
  int min_samples = 20;
  int max_samples = 2000;
  double precision = 0.005;  // half-width of the median's 95 % interval, relative; 0: never stops for it
  Nanoseconds device_budget = std::chrono::seconds(3);
  Nanoseconds wall_budget = std::chrono::seconds(10);
  bool cold = true;            // rotate input sets beyond twice the last-level cache
  double verify_share = 0.05;  // of timed samples, chosen at random, at least one: their outputs are checked
};

// "kernel" (default) or "quick" (at most 0.3 s a case). Error(usage) with the names otherwise.
Protocol find_protocol(std::string_view name);
Json to_json(const Protocol& protocol);

}  // namespace syslab::measure
