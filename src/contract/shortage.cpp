#include "contract/shortage.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace syslab {

std::string Shortage::text() const { return fmt::format("needs {} {}", needed, of == Of::gpus ? "GPUs" : "ranks"); }

Json to_json(const Shortage& shortage) {
  return {{shortage.of == Shortage::Of::gpus ? "gpus" : "ranks", shortage.needed}};
}

std::optional<Shortage> shortage_of(const Json& json) {
  if (!json.is_object() || json.size() != 1) return std::nullopt;
  for (const auto of : {Shortage::Of::gpus, Shortage::Of::ranks}) {
    const auto found = json.find(of == Shortage::Of::gpus ? "gpus" : "ranks");
    if (found == json.end() || !found->is_number_unsigned()) continue;
    const auto needed = found->get<std::uint64_t>();
    if (needed <= std::numeric_limits<int>::max()) return Shortage{of, static_cast<int>(needed)};
  }
  return std::nullopt;
}

}  // namespace syslab
