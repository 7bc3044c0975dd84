// Which kind of device computes: the value of the reserved axis `device`.
#pragma once

#include <optional>
#include <string_view>

namespace syslab {

enum class DeviceKind { cpu, cuda };
std::string_view to_string(DeviceKind kind);                      // "cpu", "cuda"
std::optional<DeviceKind> device_kind_of(std::string_view word);  // of such a word

// JSON would hold its number: to_string() is for it.
template <typename AnyJson>
void to_json(AnyJson& json, DeviceKind kind) = delete;

}  // namespace syslab
