#include "parallel/state_memory.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "paper/ring_costs.hpp"

namespace syslab::parallel {

std::string_view to_string(Sharding sharding) {
  switch (sharding) {
    case Sharding::none:
      return "none";
    case Sharding::optimizer:
      return "optimizer";
    case Sharding::zero1:
      return "zero1";
    case Sharding::zero2:
      return "zero2";
    case Sharding::zero3:
      return "zero3";
  }
  throw Error(ErrorKind::internal, "no such sharding");
}

StateBytes state_bytes(double parameters, std::int64_t ranks, Sharding sharding, const StateWidths& widths) {
  if (ranks < 1) throw Error(ErrorKind::usage, fmt::format("{} ranks; at least 1 is wanted", ranks));
  // Sharded from stage `from` on. Owners of whole parameters hold on average as much as ZeRO-1's slices.
  const auto share = [&](std::int64_t width, Sharding from) {
    const double bytes = parameters * static_cast<double>(width);
    return sharding >= from ? bytes / static_cast<double>(ranks) : bytes;
  };
  return {.weights = share(widths.weight, Sharding::zero3),
          .gradients = share(widths.gradient, Sharding::zero2),
          .master = share(widths.master, Sharding::optimizer),
          .moments = share(widths.moments, Sharding::optimizer)};
}

StepTraffic step_traffic(double gradient_bytes, double weight_bytes, std::int64_t ranks, Sharding sharding,
                         std::int64_t micro_steps) {
  if (micro_steps < 1) throw Error(ErrorKind::usage, fmt::format("{} micro-steps; at least 1 is wanted", micro_steps));
  const double reduced = ring_all_reduce_sent(gradient_bytes, ranks);
  const double scattered = ring_reduce_scatter_sent(gradient_bytes, ranks);
  const double gathered = ring_all_gather_sent(weight_bytes, ranks);
  const auto times = static_cast<double>(micro_steps);
  const auto both_ways = [](double sent) { return StepTraffic{sent, sent}; };
  switch (sharding) {
    case Sharding::none:
      return both_ways(reduced);
    case Sharding::optimizer:
      // The owners broadcast one after the other, so the bytes of all count.
      return {reduced + chain_broadcast_sent(weight_bytes, ranks), reduced + (ranks > 1 ? weight_bytes : 0)};
    case Sharding::zero1:
      return both_ways(scattered + gathered);
    case Sharding::zero2:
      return both_ways(times * scattered + gathered);
    case Sharding::zero3:
      return both_ways(times * (scattered + 2 * gathered));
  }
  throw Error(ErrorKind::internal, "no such sharding");
}

}  // namespace syslab::parallel
