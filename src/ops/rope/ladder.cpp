#include <fmt/format.h>

#include <vector>

#include "core/text/named.hpp"
#include "ops/rope/rungs.hpp"
#include "ops/supports_dtypes.hpp"

namespace syslab::rope {

std::function<std::optional<std::string>(const Problem&, Pass)> supports_dtypes(const RungInfo& info,
                                                                                std::int64_t most_head_dim) {
  return [info, most_head_dim](const Problem& problem, Pass) -> std::optional<std::string> {
    if (problem.head_dim > most_head_dim) {
      return fmt::format("{} takes heads up to {}, not {}", info.name, most_head_dim, problem.head_dim);
    }
    return ops::refused_dtype(info, problem.x_dtype);
  };
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(), eager_cuda_rung(), fused_cuda_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of rope", name); }

}  // namespace syslab::rope
