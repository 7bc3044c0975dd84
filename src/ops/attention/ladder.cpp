#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/text/named.hpp"
#include "device/parallel.hpp"
#include "ops/attention/attention.hpp"
#include "ops/attention/autograd.hpp"
#include "ops/attention/naive/materialised.hpp"
#include "ops/attention/oracle/reference.hpp"
#include "ops/attention/rungs.hpp"

namespace syslab::attention {

std::optional<std::string> refuse_dtype(const std::vector<DType>& dtypes, const Problem& problem) {
  if (std::ranges::find(dtypes, problem.dtype) != dtypes.end()) return std::nullopt;
  std::vector<std::string> names;
  for (const DType dtype : dtypes) names.emplace_back(to_string(dtype));
  return fmt::format("takes {}, not {}", fmt::join(names, ", "), to_string(problem.dtype));
}

RungFact forward_tile_fact(int head_dim, std::int64_t queries, std::int64_t keys) {
  return {head_dim == 0 ? "forward_tile" : fmt::format("forward_tile_{}", head_dim),
          fmt::format("{} × {}", queries, keys), "queries × keys"};
}

int threads_worth(const Problem& problem, Pass pass) {
  constexpr double kFlopsOfAThread = 0x1p25;  // half a millisecond at 64 GFLOP/s
  const double flops = pass == Pass::forward ? forward_flops(problem) : backward_flops(problem);
  const double threads = std::clamp(flops / kFlopsOfAThread, 1.0, static_cast<double>(device::thread_count()));
  return static_cast<int>(threads);
}

Rung reference_rung() {
  auto rung =
      ops::reference<Rung>("the formulas in double precision, row by row: what every other rung is measured against");
  rung.supports = [dtypes = rung.dtypes](const Problem& problem, Pass) { return refuse_dtype(dtypes, problem); };
  rung.forward = [](const Problem& problem, const ForwardArgs& args, ops::Workspace, device::Stream) {
    reference_forward(problem, args);
  };
  rung.backward = [](const Problem& problem, const BackwardArgs& args, ops::Workspace, device::Stream) {
    reference_backward(problem, args);
  };
  return rung;
}

std::span<const Rung> ladder() {
  static const std::array rungs{reference_rung(),
                                naive_rung(),
                                flash_tiled_rung(),
                                reference_cuda_rung(),
                                as_rung(naive_cuda_literal_rung()),
                                naive_cuda_rung(),
                                flash_tf32_rung(),
                                flash_fp32_rung(),
                                flash_mma_rung(),
                                flash_mma_deterministic_rung(),
                                flash_wgmma_rung(),
                                flash_wgmma_deterministic_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation", name); }

}  // namespace syslab::attention
