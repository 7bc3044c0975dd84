#include <vector>

#include "core/text/named.hpp"
#include "ops/swiglu/rungs.hpp"

namespace syslab::swiglu {

std::span<const Rung> ladder() {
  static const std::vector<Rung> rungs = {reference_rung(), naive_rung(), eager_cuda_rung(), fused_cuda_rung()};
  return rungs;
}

const Rung& find_rung(std::string_view name) { return find_named(ladder(), "implementation of swiglu", name); }

}  // namespace syslab::swiglu
