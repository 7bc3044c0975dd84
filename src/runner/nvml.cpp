#include "runner/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

namespace syslab::runner {
namespace {

// The part of NVML's ABI that is used here (NVML API Reference Guide; functions with a version suffix never change).
using NvmlReturn = int;
using NvmlDevice = struct NvmlDeviceOpaque*;
constexpr NvmlReturn kSuccess = 0;
constexpr unsigned kClockSm = 1, kClockMemory = 2;

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

class Library {
 public:
  Library() : handle_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) return;
    const auto init = function<NvmlReturn()>("nvmlInit_v2");
    state_ = init != nullptr ? init() : -1;
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle_ == nullptr) return;
    if (const auto shutdown = function<NvmlReturn()>("nvmlShutdown"); shutdown != nullptr && usable()) shutdown();
    ::dlclose(handle_);
  }

  bool found() const { return handle_ != nullptr; }
  bool usable() const { return found() && state_ == kSuccess; }
  NvmlReturn state() const { return state_; }

  template <typename Signature>
  Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(::dlsym(handle_, name));
  }

  // Calls `name`; false when this library has no such function or the function says no (a GPU without ECC, say).
  template <typename... Arguments>
  bool ask(const char* name, Arguments... arguments) const {
    const auto found = function<NvmlReturn(Arguments...)>(name);
    return found != nullptr && found(arguments...) == kSuccess;
  }

  // The common shapes of a question about a device: one unsigned number, or a text.
  void number(Json& facts, const char* key, NvmlDevice device, const char* name) const {
    if (unsigned value = 0; ask(name, device, &value)) facts[key] = value;
  }
  void clock(Json& facts, const char* key, NvmlDevice device, const char* name, unsigned which) const {
    if (unsigned mhz = 0; ask(name, device, which, &mhz)) facts[key] = mhz;
  }
  void watts(Json& facts, const char* key, NvmlDevice device, const char* name) const {
    if (unsigned milliwatts = 0; ask(name, device, &milliwatts)) facts[key] = milliwatts / 1000.0;
  }
  void text(Json& facts, const char* key, NvmlDevice device, const char* name) const {
    std::array<char, 128> value{};
    if (ask(name, device, value.data(), static_cast<unsigned>(value.size() - 1))) facts[key] = value.data();
  }
  // The mode in force; the one after the next reset does not matter here.
  void mode(Json& facts, const char* key, NvmlDevice device, const char* name) const {
    if (unsigned current = 0, pending = 0; ask(name, device, &current, &pending)) facts[key] = current != 0;
  }

 private:
  void* handle_;
  NvmlReturn state_ = -1;
};

Json device_facts(const Library& nvml, NvmlDevice device) {
  Json facts = Json::object();
  nvml.text(facts, "name", device, "nvmlDeviceGetName");
  nvml.text(facts, "uuid", device, "nvmlDeviceGetUUID");
  if (NvmlPciInfo pci{}; nvml.ask("nvmlDeviceGetPciInfo_v3", device, &pci)) facts["pci"] = pci.bus_id;
  if (NvmlMemory memory{}; nvml.ask("nvmlDeviceGetMemoryInfo", device, &memory)) facts["memory_bytes"] = memory.total;
  if (int major = 0, minor = 0; nvml.ask("nvmlDeviceGetCudaComputeCapability", device, &major, &minor)) {
    facts["compute_capability"] = fmt::format("{}.{}", major, minor);
  }
  nvml.number(facts, "cuda_cores", device, "nvmlDeviceGetNumGpuCores");
  nvml.number(facts, "memory_bus_bits", device, "nvmlDeviceGetMemoryBusWidth");
  nvml.watts(facts, "power_limit_w", device, "nvmlDeviceGetPowerManagementLimit");
  nvml.watts(facts, "power_limit_default_w", device, "nvmlDeviceGetPowerManagementDefaultLimit");
  nvml.number(facts, "persistence_mode", device, "nvmlDeviceGetPersistenceMode");
  nvml.number(facts, "compute_mode", device, "nvmlDeviceGetComputeMode");
  nvml.mode(facts, "ecc", device, "nvmlDeviceGetEccMode");
  nvml.mode(facts, "mig", device, "nvmlDeviceGetMigMode");
  nvml.clock(facts, "sm_mhz_max", device, "nvmlDeviceGetMaxClockInfo", kClockSm);
  nvml.clock(facts, "memory_mhz_max", device, "nvmlDeviceGetMaxClockInfo", kClockMemory);
  nvml.clock(facts, "sm_mhz_application", device, "nvmlDeviceGetApplicationsClock", kClockSm);
  nvml.clock(facts, "memory_mhz_application", device, "nvmlDeviceGetApplicationsClock", kClockMemory);
  return facts;
}

Json driver_facts(const Library& nvml) {
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
  const Library nvml;
  if (!nvml.found()) return {{"gpu", Json::array()}, {"cuda", {{"missing", "libnvidia-ml.so.1 is not there"}}}};
  if (!nvml.usable()) {
    return {{"gpu", Json::array()}, {"cuda", {{"missing", fmt::format("nvmlInit_v2 says {}", nvml.state())}}}};
  }
  Json gpus = Json::array();
  unsigned count = 0;
  nvml.ask("nvmlDeviceGetCount_v2", &count);
  for (unsigned index = 0; index < count; ++index) {
    NvmlDevice device = nullptr;
    if (nvml.ask("nvmlDeviceGetHandleByIndex_v2", index, &device)) gpus.push_back(device_facts(nvml, device));
  }
  return {{"gpu", std::move(gpus)}, {"cuda", driver_facts(nvml)}};
}

}  // namespace syslab::runner
