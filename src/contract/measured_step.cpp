#include "contract/measured_step.hpp"

#include <fmt/format.h>

#include <cmath>

namespace syslab {

std::optional<std::string> StepWorkload::what_is_wrong() {
  const double found = loss();
  if (std::isfinite(found)) return std::nullopt;
  return fmt::format("the loss is {}", found);
}

}  // namespace syslab
