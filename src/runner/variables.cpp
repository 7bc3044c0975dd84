#include "runner/variables.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

namespace syslab::runner {
namespace {

constexpr std::array<std::string_view, 16> kPrefixes{
    "CUDA_",  "NVIDIA_",          "NCCL_", "GLOO_",   "OMP_",   "GOMP_",  "KMP_", "OPENBLAS_", "MKL_", "BLIS_",
    "SLURM_", "OMPI_COMM_WORLD_", "PMI_",  "MALLOC_", "TORCH_", "SYSLAB_"};
constexpr std::array<std::string_view, 14> kNames{
    "RANK",      "WORLD_SIZE", "LOCAL_RANK",   "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",     "MPI_LOCALRANKID",
    "PMIX_RANK", "LSB_JOBID",  "LSB_JOBINDEX", "PBS_JOBID",        "LD_PRELOAD",  "LD_LIBRARY_PATH", "GLIBC_TUNABLES"};
constexpr std::array<std::string_view, 6> kSecretNames{"KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CRED"};
constexpr std::array<std::string_view, 5> kSecretValues{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "BEARER"};

template <std::size_t size>
bool contains_any(std::string_view text, const std::array<std::string_view, size>& words) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return upper.find(word) != std::string::npos; });
}

// "scheme://user:password@host"
bool has_credentials_in_url(std::string_view value) {
  const std::size_t scheme = value.find("://");
  return scheme != std::string_view::npos && value.find('@', scheme) != std::string_view::npos;
}

}  // namespace

bool is_storable_variable(std::string_view name, std::string_view value) {
  const bool listed = std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
                      std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                  [&](std::string_view prefix) { return name.starts_with(prefix); });
  return listed && !contains_any(name, kSecretNames) && !contains_any(value, kSecretValues) &&
         !has_credentials_in_url(value);
}

Json storable_variables(const std::vector<std::string>& entries) {
  Json kept = Json::object();
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = entry.substr(0, equals);
    const std::string value = entry.substr(equals + 1);
    if (is_storable_variable(name, value)) kept[name] = value;
  }
  return kept;
}

}  // namespace syslab::runner
