#include "measure/protocol.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace syslab::measure {
namespace {

// A smoke run: enough samples for a 95 % interval of the median to exist, and no more time than a person waits for.
Protocol quick() {
  using std::chrono::milliseconds;
  Protocol protocol;
  protocol.name = "quick";
  protocol.warmup_calls = 3;
  protocol.warmup_time = milliseconds(5);
  protocol.warmup_limit = milliseconds(50);
  protocol.warmup_until_steady = false;
  protocol.min_samples = 8;
  protocol.max_samples = 40;
  protocol.precision = 0.02;
  protocol.device_budget = milliseconds(120);
  protocol.wall_budget = milliseconds(200);
  protocol.cold = false;
  return protocol;
}

}  // namespace

Protocol find_protocol(std::string_view name) {
  if (name == "kernel") return Protocol{};
  if (name == "quick") return quick();
  throw Error(ErrorKind::usage, fmt::format("unknown protocol '{}'; there are kernel (default) and quick", name));
}

Json to_json(const Protocol& protocol) {
  return {{"name", protocol.name},
          {"warmup_calls", protocol.warmup_calls},
          {"warmup_time_ns", protocol.warmup_time.count()},
          {"warmup_limit_ns", protocol.warmup_limit.count()},
          {"warmup_until_steady", protocol.warmup_until_steady},
          {"sample_floor_ns", protocol.sample_floor.count()},
          {"min_samples", protocol.min_samples},
          {"max_samples", protocol.max_samples},
          {"precision", protocol.precision},
          {"device_budget_ns", protocol.device_budget.count()},
          {"wall_budget_ns", protocol.wall_budget.count()},
          {"cold", protocol.cold},
          {"verify_share", protocol.verify_share}};
}

}  // namespace syslab::measure
