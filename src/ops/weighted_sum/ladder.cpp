#include <fmt/format.h>

#include <vector>

#include "core/text/named.hpp"
#include "ops/weighted_sum/rungs.hpp"

namespace syslab::weighted_sum {

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(), tiled_rung(), tiled_cuda_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of weighted_sum", name); }

const Rung& dispatch(const Problem& problem, Pass pass, device::Kind device) {
  validate(problem);
  std::string reasons;
  const std::span<const Rung> rungs = ladder();
  for (auto rung = rungs.rbegin(); rung != rungs.rend(); ++rung) {
    std::optional<std::string> reason;
    if (rung->device != device) {
      reason = fmt::format("{} runs on another device", rung->name);
    } else if (!rung->unavailable.empty()) {
      reason = fmt::format("{} {}", rung->name, rung->unavailable);
    } else {
      reason = rung->supports(problem, pass);
    }
    if (!reason) return *rung;
    reasons += "\n  " + *reason;
  }
  throw Error(ErrorKind::usage, fmt::format("no implementation takes {}:{}", to_string(problem), reasons));
}

}  // namespace syslab::weighted_sum
