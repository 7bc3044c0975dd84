#include "measure/protocol.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/text/named.hpp"

namespace syslab::measure {
namespace {

using std::chrono::milliseconds;

constexpr Nanoseconds kNone{};

// The hand-out's rule, so that a student's number and this one mean the same: 5 warm-up steps, 10 measured ones with a
// synchronisation after each, mean and standard deviation. Source: CS336 Assignment 2, section 1.1.3.
Protocol cs336() {
  Protocol protocol;
  protocol.name = "cs336";
  protocol.summary = "the hand-out's: 5 steps of warm-up, 10 measured, mean and standard deviation";
  protocol.warmup_calls = 5;
  protocol.warmup_time = kNone;
  protocol.warmup_limit = kNone;
  protocol.warmup_until_steady = false;
  protocol.sample_floor = kNone;
  protocol.block = 1;
  protocol.cache = Cache::hot;
  protocol.launch = Launch::direct;
  protocol.min_samples = protocol.max_samples = 10;
  protocol.precision = 0;
  protocol.device_budget = protocol.wall_budget = kNone;
  protocol.cool_down = kNone;
  protocol.headline = {"time_mean", "time_stddev", "time"};
  return protocol;
}

// The hand-out's rule for the attention of problem pytorch_attention: warm up, then 100 passes with a wait after each.
Protocol cs336_100() {
  Protocol protocol = cs336();
  protocol.name = "cs336_100";
  protocol.summary = "as cs336, 100 measured: the hand-out's for attention alone";
  protocol.min_samples = protocol.max_samples = 100;
  return protocol;
}

// Where bytes are the question: each step takes the same, and of the largest models a step takes seconds.
Protocol few() {
  Protocol protocol = cs336();
  protocol.name = "few";
  protocol.summary = "as cs336, 1 step of warm-up, 2 measured: for bytes, which every step takes alike";
  protocol.warmup_calls = 1;
  protocol.min_samples = protocol.max_samples = 2;
  return protocol;
}

// Triton's triton.testing.do_bench with its defaults, so that rows from C++ and from Triton share a method.
Protocol do_bench() {
  Protocol protocol;
  protocol.name = "do_bench";
  protocol.summary = "Triton's: 25 ms of warm-up, 100 ms of repeats, 256 MB written before each call";
  protocol.warmup_calls = 1;
  protocol.warmup_time = milliseconds(25);
  protocol.warmup_limit = kNone;
  protocol.warmup_until_steady = false;
  protocol.estimate_calls = 5;
  protocol.repeat_time = milliseconds(100);
  protocol.sample_floor = kNone;
  protocol.cache = Cache::flush;
  protocol.flush_bytes = 256'000'000;
  protocol.launch = Launch::direct;
  protocol.min_samples = 1;
  protocol.max_samples = 1'000'000;
  protocol.precision = 0;
  protocol.device_budget = protocol.wall_budget = kNone;
  protocol.cool_down = kNone;
  protocol.headline = {"time", "time_mean"};
  return protocol;
}

// The numbers with which the hand-out's leaderboard of 2025 calls do_bench.
Protocol leaderboard() {
  Protocol protocol = do_bench();
  protocol.name = "leaderboard";
  protocol.summary = "as do_bench, 1 s of warm-up, 10 s of repeats: the leaderboard's of 2025";
  protocol.warmup_time = std::chrono::seconds(1);
  protocol.repeat_time = std::chrono::seconds(10);
  protocol.headline = {"time_mean", "time"};
  return protocol;
}

// The numbers with which the hand-out's leaderboard of 2026 calls do_bench, on a training step of two ranks.
Protocol leaderboard_2026() {
  Protocol protocol = leaderboard();
  protocol.name = "leaderboard_2026";
  protocol.summary = "as do_bench, 10 s of warm-up, 30 s of repeats: the leaderboard's of 2026";
  protocol.warmup_time = std::chrono::seconds(10);
  protocol.repeat_time = std::chrono::seconds(30);
  return protocol;
}

Protocol hot() {
  Protocol protocol;
  protocol.name = "hot";
  protocol.summary = "as kernel, on one input set that is in the caches";
  protocol.cache = Cache::hot;
  return protocol;
}

Protocol graph() {
  Protocol protocol;
  protocol.name = "graph";
  protocol.summary = "as kernel, every sample a captured graph (GPUs)";
  protocol.launch = Launch::graph;
  return protocol;
}

// A smoke run: enough samples for a 95 % interval of the median to exist, and no more time than a person waits for.
Protocol quick() {
  Protocol protocol;
  protocol.name = "quick";
  protocol.summary = "at most 0.3 s a case: to see that everything works";
  protocol.warmup_time = milliseconds(5);
  protocol.warmup_limit = milliseconds(50);
  protocol.warmup_until_steady = false;
  protocol.sample_floor = std::chrono::microseconds(50);  // content for more calls would take longer than the calls
  protocol.min_samples = 8;
  protocol.max_samples = 40;
  protocol.precision = 0.02;
  protocol.device_budget = milliseconds(120);
  protocol.wall_budget = milliseconds(200);
  protocol.cache = Cache::hot;
  protocol.cool_down = kNone;
  return protocol;
}

Protocol publish() {
  Protocol protocol;
  protocol.name = "publish";
  protocol.summary = "as kernel, in five fresh processes";
  protocol.launches = 5;
  return protocol;
}

std::string_view to_string(Cache cache) {
  switch (cache) {
    case Cache::rotate:
      return "rotate";
    case Cache::flush:
      return "flush";
    case Cache::hot:
      return "hot";
  }
  return "";
}

std::string_view to_string(Launch launch) {
  switch (launch) {
    case Launch::direct:
      return "direct";
    case Launch::graph_if_possible:
      return "graph if possible";
    case Launch::graph:
      return "graph";
  }
  return "";
}

}  // namespace

std::span<const Protocol> protocols() {
  static const std::array all{Protocol{},         cs336(), cs336_100(), few(),   do_bench(), leaderboard(),
                              leaderboard_2026(), hot(),   graph(),     quick(), publish()};
  return all;
}

Protocol find_protocol(std::string_view name) { return find_named(protocols(), "protocol", name); }

Json to_json(const Protocol& protocol) {
  return {{"name", protocol.name},
          {"version", kMeasuringVersion},
          {"warmup_calls", protocol.warmup_calls},
          {"warmup_time_ns", protocol.warmup_time.count()},
          {"warmup_limit_ns", protocol.warmup_limit.count()},
          {"warmup_until_steady", protocol.warmup_until_steady},
          {"estimate_calls", protocol.estimate_calls},
          {"repeat_time_ns", protocol.repeat_time.count()},
          {"sample_floor_ns", protocol.sample_floor.count()},
          {"block", protocol.block},
          {"cache", to_string(protocol.cache)},
          {"flush_bytes", protocol.flush_bytes},
          {"launch", to_string(protocol.launch)},
          {"verify_share", protocol.verify_share},
          {"min_samples", protocol.min_samples},
          {"max_samples", protocol.max_samples},
          {"precision", protocol.precision},
          {"device_budget_ns", protocol.device_budget.count()},
          {"wall_budget_ns", protocol.wall_budget.count()},
          {"cool_down_ns", protocol.cool_down.count()},
          {"cool_down_limit_ns", protocol.cool_down_limit.count()},
          {"launches", protocol.launches},
          {"headline", protocol.headline}};
}

}  // namespace syslab::measure
