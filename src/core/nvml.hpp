// NVIDIA's management library, which comes with the driver. It is loaded at run time, opens no CUDA context and needs
// no CUDA to build, so the parent process of a run may use it; the few functions needed are declared here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace syslab {

using NvmlDevice = struct NvmlDeviceOpaque*;

// Bits of GpuState::slowed_by (NVML API Reference Guide, "Clocks Event Reasons"): why clocks are below their maximum.
inline constexpr std::uint64_t kSlowedByIdle = 0x1;
inline constexpr std::uint64_t kSlowedByPowerCap = 0x4 | 0x80;  // the software's cap, or the machine's power brake
inline constexpr std::uint64_t kSlowedByHardware = 0x8;
inline constexpr std::uint64_t kSlowedByHeat = 0x20 | 0x40;

// The current state of a GPU, as far as it reports it.
struct GpuState {
  std::optional<unsigned> sm_mhz, memory_mhz, celsius;
  std::optional<double> watts;
  std::optional<std::uint64_t> slowed_by;
};

class Nvml {
 public:
  Nvml();  // never throws: a machine without a driver is normal
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  bool usable() const { return why_.empty(); }
  const std::string& why() const { return why_; }  // not usable: "libnvidia-ml.so.1 is not there"

  // Calls `name` with NVML's own types; false if this library has no such function or it fails (on a GPU without ECC,
  // say).
  template <typename... Arguments>
  bool ask(const char* name, Arguments... arguments) const {
    const auto found = reinterpret_cast<int (*)(Arguments...)>(symbol(name));
    return found != nullptr && found(arguments...) == 0;
  }

  unsigned device_count() const;
  NvmlDevice device(unsigned index) const;           // null: none
  NvmlDevice device(const std::string& uuid) const;  // "GPU-6ed1…": CUDA may number GPUs differently
  GpuState state(NvmlDevice device) const;
  std::optional<std::uint64_t> slowed_by(NvmlDevice device) const;  // as in state(), in one query

 private:
  void* symbol(const char* name) const;
  void* handle_;
  bool started_ = false;
  std::string why_;
};

}  // namespace syslab
