#include <fmt/format.h>

#include <vector>

#include "ops/find_rung.hpp"
#include "ops/rms_norm/rungs.hpp"

namespace syslab::rms_norm {

std::function<std::optional<std::string>(const Problem&, Direction)> supports_dtypes(const ops::RungInfo& info) {
  return [name = info.name, dtypes = info.dtypes](const Problem& problem, Direction) -> std::optional<std::string> {
    std::string known;
    for (const DType dtype : dtypes) {
      if (dtype == problem.x_dtype) return std::nullopt;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", to_string(dtype));
    }
    return fmt::format("{} takes {}, not {}", name, known, to_string(problem.x_dtype));
  };
}

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(), eager_cuda_rung(), fused_cuda_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return ops::find_rung(ladder(), "rms_norm", name); }

}  // namespace syslab::rms_norm
