#include "core/nvml.hpp"

#include <dlfcn.h>

namespace syslab {

Nvml::Nvml() : handle_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) {
    why_ = "libnvidia-ml.so.1 is not there";
    return;
  }
  const auto init = reinterpret_cast<int (*)()>(symbol("nvmlInit_v2"));
  const int answer = init == nullptr ? -1 : init();
  started_ = answer == 0;
  if (!started_) why_ = "nvmlInit_v2 says " + std::to_string(answer);
}

Nvml::~Nvml() {
  if (handle_ == nullptr) return;
  if (started_) ask("nvmlShutdown");
  ::dlclose(handle_);
}

void* Nvml::symbol(const char* name) const { return handle_ == nullptr ? nullptr : ::dlsym(handle_, name); }

unsigned Nvml::device_count() const {
  unsigned count = 0;
  return usable() && ask("nvmlDeviceGetCount_v2", &count) ? count : 0;
}

NvmlDevice Nvml::device(unsigned index) const {
  NvmlDevice found = nullptr;
  return usable() && ask("nvmlDeviceGetHandleByIndex_v2", index, &found) ? found : nullptr;
}

NvmlDevice Nvml::device(const std::string& uuid) const {
  NvmlDevice found = nullptr;
  return usable() && ask("nvmlDeviceGetHandleByUUID", uuid.c_str(), &found) ? found : nullptr;
}

GpuState Nvml::state(NvmlDevice device) const {
  constexpr unsigned kSm = 1, kMemory = 2, kGpuTemperature = 0;
  GpuState state;
  if (device == nullptr || !usable()) return state;
  if (unsigned mhz = 0; ask("nvmlDeviceGetClockInfo", device, kSm, &mhz)) state.sm_mhz = mhz;
  if (unsigned mhz = 0; ask("nvmlDeviceGetClockInfo", device, kMemory, &mhz)) state.memory_mhz = mhz;
  if (unsigned celsius = 0; ask("nvmlDeviceGetTemperature", device, kGpuTemperature, &celsius)) state.celsius = celsius;
  if (unsigned milliwatts = 0; ask("nvmlDeviceGetPowerUsage", device, &milliwatts)) state.watts = milliwatts / 1000.0;
  state.slowed_by = slowed_by(device);
  return state;
}

std::optional<std::uint64_t> Nvml::slowed_by(NvmlDevice device) const {
  unsigned long long reasons = 0;
  if (device == nullptr || !usable()) return std::nullopt;
  // The second is the first's name before driver 535.
  if (ask("nvmlDeviceGetCurrentClocksEventReasons", device, &reasons) ||
      ask("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons)) {
    return reasons;
  }
  return std::nullopt;
}

}  // namespace syslab
