#include "core/device_kind.hpp"

namespace syslab {

std::string_view to_string(DeviceKind kind) { return kind == DeviceKind::cpu ? "cpu" : "cuda"; }

std::optional<DeviceKind> device_kind_of(std::string_view word) {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    if (to_string(kind) == word) return kind;
  }
  return std::nullopt;
}

}  // namespace syslab
