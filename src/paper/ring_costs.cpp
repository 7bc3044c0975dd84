#include "paper/ring_costs.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace syslab::parallel {
namespace {

// (n−1)/n: the part of a tensor that is not a rank's own.
double others_share(std::int64_t ranks) {
  if (ranks < 1) throw Error(ErrorKind::usage, fmt::format("a ring of {} ranks; at least 1 is wanted", ranks));
  return static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

}  // namespace

double ring_all_gather_sent(double bytes, std::int64_t ranks) { return others_share(ranks) * bytes; }

double ring_reduce_scatter_sent(double bytes, std::int64_t ranks) { return others_share(ranks) * bytes; }

double ring_all_reduce_sent(double bytes, std::int64_t ranks) { return 2 * others_share(ranks) * bytes; }

double chain_broadcast_sent(double bytes, std::int64_t ranks) { return others_share(ranks) * bytes; }

}  // namespace syslab::parallel
