#include "runner/environment.hpp"

#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/hash.hpp"
#include "core/text/json_text.hpp"
#include "core/text/text.hpp"
#include "runner/nvml.hpp"
#include "runner/variables.hpp"

extern char** environ;

namespace syslab::runner {
namespace {

namespace fs = std::filesystem;

// The first line of a small file, trimmed; empty when there is none.
std::string first_line_of_file(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return trim(line);
}

void put_line(Json& facts, const char* key, const fs::path& path) {
  if (std::string line = first_line_of_file(path); !line.empty()) facts[key] = std::move(line);
}

// Value of a "key <separator> value" line.
std::string field_of(const fs::path& path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find(separator);
    if (at != std::string::npos && trim(line.substr(0, at)) == key) return trim(line.substr(at + 1));
  }
  return "";
}

Json host_facts() {
  struct utsname system {};
  ::uname(&system);
  std::string os = field_of("/etc/os-release", "PRETTY_NAME", '=');
  std::erase(os, '"');
  return {{"name", system.nodename}, {"os", os}, {"kernel", system.release}, {"machine", system.machine}};
}

int usable_cpus() {
  cpu_set_t allowed;
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed)
                                                               : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

struct CpuInfo {
  std::string model;
  std::set<std::pair<std::string, std::string>> cores;  // socket, core
  std::set<std::string> sockets;
  std::string flags;
};

CpuInfo read_cpuinfo() {
  CpuInfo info;
  std::ifstream file("/proc/cpuinfo");
  std::string socket = "0";
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = trim(line.substr(0, colon));
    const std::string value = trim(line.substr(colon + 1));
    if (key == "model name" || (key == "CPU part" && info.model.empty())) info.model = value;
    if (key == "physical id") info.sockets.insert(socket = value);
    if (key == "core id") info.cores.emplace(socket, value);
    if (key == "flags" || key == "Features") info.flags = " " + value + " ";
  }
  return info;
}

Json cpu_facts() {
  const CpuInfo info = read_cpuinfo();
  Json facts{{"model", info.model},
             {"logical", ::sysconf(_SC_NPROCESSORS_ONLN)},
             {"usable", usable_cpus()},
             {"cores", std::max<std::size_t>(info.cores.size(), 1)},
             {"sockets", std::max<std::size_t>(info.sockets.size(), 1)},
             {"virtual_machine", info.flags.find(" hypervisor ") != std::string::npos}};
  Json features = Json::array();  // those that kernels and BLAS libraries choose by
  for (const char* name : {"avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
                           "asimd", "sve", "bf16"}) {
    if (info.flags.find(" " + std::string(name) + " ") != std::string::npos) features.push_back(name);
  }
  facts["features"] = features;
  const struct {
    const char* key;
    int name;
  } caches[] = {
      {"l1d_bytes", _SC_LEVEL1_DCACHE_SIZE}, {"l2_bytes", _SC_LEVEL2_CACHE_SIZE}, {"l3_bytes", _SC_LEVEL3_CACHE_SIZE}};
  for (const auto& cache : caches) {
    if (const long bytes = ::sysconf(cache.name); bytes > 0) facts[cache.key] = bytes;
  }
  const fs::path cpufreq = "/sys/devices/system/cpu/cpu0/cpufreq";
  put_line(facts, "governor", cpufreq / "scaling_governor");
  put_line(facts, "max_khz", cpufreq / "cpuinfo_max_freq");
  put_line(facts, "no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo");
  put_line(facts, "smt", "/sys/devices/system/cpu/smt/active");
  put_line(facts, "numa_nodes", "/sys/devices/system/node/online");
  return facts;
}

Json memory_facts() {
  Json facts{{"page_bytes", ::sysconf(_SC_PAGESIZE)}};
  std::istringstream total(field_of("/proc/meminfo", "MemTotal", ':'));
  if (std::uint64_t kibibytes = 0; total >> kibibytes) facts["total_bytes"] = kibibytes * 1024;
  put_line(facts, "transparent_huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled");
  return facts;
}

Json limit_facts() {
  Json facts = Json::object();
  const struct {
    const char* key;
    decltype(RLIMIT_AS) name;
  } limits[] = {{"address_space_bytes", RLIMIT_AS}, {"locked_memory_bytes", RLIMIT_MEMLOCK},
                {"stack_bytes", RLIMIT_STACK},      {"open_files", RLIMIT_NOFILE},
                {"file_bytes", RLIMIT_FSIZE},       {"processes", RLIMIT_NPROC}};
  for (const auto& limit : limits) {
    struct rlimit now {};
    if (::getrlimit(limit.name, &now) != 0) continue;
    facts[limit.key] = now.rlim_cur == RLIM_INFINITY ? Json("unlimited") : Json(std::uint64_t{now.rlim_cur});
  }
  put_line(facts, "cgroup_memory", "/sys/fs/cgroup/memory.max");
  put_line(facts, "cgroup_cpu", "/sys/fs/cgroup/cpu.max");
  return facts;
}

// Empty on bare metal, as far as we can tell.
std::string container_hint() {
  if (fs::exists("/run/.containerenv")) return "podman";
  if (fs::exists("/.dockerenv")) return "docker";
  if (::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return "kubernetes";
  if (::getenv("APPTAINER_CONTAINER") != nullptr || ::getenv("SINGULARITY_CONTAINER") != nullptr) return "apptainer";
  return first_line_of_file("/proc/1/cgroup").find("docker") != std::string::npos ? "docker" : "";
}

Json text_at(const Json& facts, const char* pointer) { return facts.value(Json::json_pointer(pointer), Json()); }

// And of what drives it.
Json kind_of_gpu(const Json& facts) {
  // The kinds of GPU, not each GPU: one card of eight is as fast as a single one.
  std::set<std::string> kinds;
  for (const Json& gpu : facts.value("gpu", Json::array())) {
    Json kind = Json::object();
    for (const char* field : {"name", "memory_bytes", "power_limit_w", "ecc", "mig"}) {
      kind[field] = gpu.value(field, Json());
    }
    kinds.insert(json_text(kind));
  }
  const std::string driver = text_at(facts, "/cuda/driver").is_string() ? text_at(facts, "/cuda/driver") : Json("");
  return {{"gpu", kinds},
          {"cpu_model", text_at(facts, "/cpu/model")},
          {"driver_major", driver.substr(0, driver.find('.'))}};
}

}  // namespace

Json environment_facts() {
  Json facts = nvml_facts();
  facts["host"] = host_facts();
  facts["cpu"] = cpu_facts();
  facts["memory"] = memory_facts();
  facts["limits"] = limit_facts();
  facts["libraries"] = {{"glibc", ::gnu_get_libc_version()}};
  if (const std::string hint = container_hint(); !hint.empty()) facts["container"] = hint;
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  facts["env"] = storable_variables(entries);
  return facts;
}

// Of what somebody else wrote as well, whatever it is.
Json facts_for_strangers(Json facts) {
  if (facts.contains("host") && facts["host"].is_object()) facts["host"].erase("name");
  if (facts.contains("gpu")) {
    for (Json& gpu : facts["gpu"]) {
      if (gpu.is_object()) gpu.erase("uuid");
    }
  }
  Json kept = Json::object();
  const Json variables = facts.value("env", Json::object());
  for (const auto& [name, value] : variables.items()) {
    if (value.is_string() && is_for_strangers(name, value.get<std::string>())) kept[name] = value;
  }
  facts["env"] = kept;
  return facts;
}

std::string comparability_key(const Json& facts) {
  Json key = kind_of_gpu(facts);
  key["cpu_cores"] = text_at(facts, "/cpu/cores");
  key["cpu_usable"] = text_at(facts, "/cpu/usable");
  return sha256_hex(json_text(key));
}

std::string comparability_key_on_one_gpu(const Json& facts) { return sha256_hex(json_text(kind_of_gpu(facts))); }

}  // namespace syslab::runner
