#include "runner/nvml.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "core/nvml.hpp"

namespace syslab::runner {
namespace {

// Structures of NVML's ABI (NVML API Reference Guide; functions with a version suffix never change).
constexpr unsigned kClockSm = 1, kClockMemory = 2;

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

// Asks one device and adds its answers to the facts.
class Questions {
 public:
  Questions(const Nvml& nvml, NvmlDevice device, Json& facts) : nvml_(nvml), device_(device), facts_(facts) {}

  // The common kinds of question about a device: an unsigned number, or a text.
  void number(const char* key, const char* name) const {
    if (unsigned value = 0; nvml_.ask(name, device_, &value)) facts_[key] = value;
  }
  void clock(const char* key, const char* name, unsigned which) const {
    if (unsigned mhz = 0; nvml_.ask(name, device_, which, &mhz)) facts_[key] = mhz;
  }
  void watts(const char* key, const char* name) const {
    if (unsigned milliwatts = 0; nvml_.ask(name, device_, &milliwatts)) facts_[key] = milliwatts / 1000.0;
  }
  void text(const char* key, const char* name) const {
    std::array<char, 128> value{};
    if (nvml_.ask(name, device_, value.data(), static_cast<unsigned>(value.size() - 1))) facts_[key] = value.data();
  }
  // The mode in force; the one after the next reset does not matter here.
  void mode(const char* key, const char* name) const {
    if (unsigned current = 0, pending = 0; nvml_.ask(name, device_, &current, &pending)) facts_[key] = current != 0;
  }

 private:
  const Nvml& nvml_;
  NvmlDevice device_;
  Json& facts_;
};

Json device_facts(const Nvml& nvml, NvmlDevice device) {
  Json facts = Json::object();
  const Questions ask(nvml, device, facts);
  ask.text("name", "nvmlDeviceGetName");
  ask.text("uuid", "nvmlDeviceGetUUID");
  if (NvmlPciInfo pci{}; nvml.ask("nvmlDeviceGetPciInfo_v3", device, &pci)) facts["pci"] = pci.bus_id;
  if (NvmlMemory memory{}; nvml.ask("nvmlDeviceGetMemoryInfo", device, &memory)) facts["memory_bytes"] = memory.total;
  if (int major = 0, minor = 0; nvml.ask("nvmlDeviceGetCudaComputeCapability", device, &major, &minor)) {
    facts["compute_capability"] = fmt::format("{}.{}", major, minor);
  }
  ask.number("cuda_cores", "nvmlDeviceGetNumGpuCores");
  ask.number("memory_bus_bits", "nvmlDeviceGetMemoryBusWidth");
  ask.watts("power_limit_w", "nvmlDeviceGetPowerManagementLimit");
  ask.watts("power_limit_default_w", "nvmlDeviceGetPowerManagementDefaultLimit");
  ask.number("persistence_mode", "nvmlDeviceGetPersistenceMode");
  ask.number("compute_mode", "nvmlDeviceGetComputeMode");
  ask.mode("ecc", "nvmlDeviceGetEccMode");
  ask.mode("mig", "nvmlDeviceGetMigMode");
  ask.clock("sm_mhz_max", "nvmlDeviceGetMaxClockInfo", kClockSm);
  ask.clock("memory_mhz_max", "nvmlDeviceGetMaxClockInfo", kClockMemory);
  ask.clock("sm_mhz_application", "nvmlDeviceGetApplicationsClock", kClockSm);
  ask.clock("memory_mhz_application", "nvmlDeviceGetApplicationsClock", kClockMemory);
  return facts;
}

Json driver_facts(const Nvml& nvml) {
  Json facts = Json::object();
  std::array<char, 128> version{};
  if (nvml.ask("nvmlSystemGetDriverVersion", version.data(), static_cast<unsigned>(version.size() - 1))) {
    facts["driver"] = version.data();
  }
  // 1000 · major + 10 · minor
  if (int cuda = 0; nvml.ask("nvmlSystemGetCudaDriverVersion_v2", &cuda)) {
    facts["driver_cuda"] = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
  }
  return facts;
}

}  // namespace

Json nvml_facts() {
  const Nvml nvml;
  if (!nvml.usable()) return {{"gpu", Json::array()}, {"cuda", {{"missing", nvml.why()}}}};
  Json gpus = Json::array();
  for (unsigned index = 0; index < nvml.device_count(); ++index) {
    if (const NvmlDevice device = nvml.device(index); device != nullptr) gpus.push_back(device_facts(nvml, device));
  }
  return {{"gpu", std::move(gpus)}, {"cuda", driver_facts(nvml)}};
}

}  // namespace syslab::runner
