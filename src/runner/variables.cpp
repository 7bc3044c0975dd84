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
// Those by which libraries compute.
constexpr std::array<std::string_view, 12> kSteering{"CUDA_",     "NCCL_", "GLOO_", "OMP_",    "GOMP_",  "KMP_",
                                                     "OPENBLAS_", "MKL_",  "BLIS_", "MALLOC_", "TORCH_", "SYSLAB_"};
// Where something lies, however it is written.
constexpr std::array<std::string_view, 11> kPlaces{"SYSLAB_BINARY",     "SYSLAB_BUILD",      "SYSLAB_BUILDS",
                                                   "SYSLAB_DB",         "SYSLAB_LIBRARY",    "SYSLAB_PYTHON",
                                                   "SYSLAB_PYTHON_DIR", "SYSLAB_RENDEZVOUS", "SYSLAB_WALLS_HIDE",
                                                   "SYSLAB_WALLS_SHOW", "NCCL_DEBUG_FILE"};
// Paths all of them, and of what is loaded, read or spoken to while it is measured.
constexpr std::array<std::string_view, 10> kMeasured{
    "LD_PRELOAD",      "LD_LIBRARY_PATH", "SYSLAB_NCCL_LIB",   "NCCL_CONF_FILE",         "NCCL_TOPO_FILE",
    "NCCL_GRAPH_FILE", "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_TUNER_CONFIG_FILE", "CUDA_MPS_PIPE_DIRECTORY"};
// Whose machine it is, among those that steer.
constexpr std::array<std::string_view, 4> kWhose{"SYSLAB_AUTHOR", "SYSLAB_HOST", "NCCL_COMM_ID", "NCCL_HOSTID"};
constexpr std::array<std::string_view, 2> kSerials{"GPU-", "MIG-"};  // CUDA_VISIBLE_DEVICES may name GPUs by them
constexpr std::array<std::string_view, 6> kSecretNames{"KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CRED"};
constexpr std::array<std::string_view, 5> kSecretValues{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "BEARER"};

template <std::size_t size>
bool contains_any(std::string_view text, const std::array<std::string_view, size>& words) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return upper.find(word) != std::string::npos; });
}

template <std::size_t size>
bool is_one_of(std::string_view name, const std::array<std::string_view, size>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <std::size_t size>
bool starts_with_any(std::string_view name, const std::array<std::string_view, size>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// An author's alias has AUTH in its name and is no secret.
bool names_a_secret(std::string_view name) { return name != "SYSLAB_AUTHOR" && contains_any(name, kSecretNames); }

bool begins_as_a_path(std::string_view value) {
  constexpr std::array<std::string_view, 5> kBeginnings{"/", "~", "./", "../", "file:"};
  return starts_with_any(value, kBeginnings);
}

// "scheme://user:password@host"
bool has_credentials_in_url(std::string_view value) {
  const std::size_t scheme = value.find("://");
  return scheme != std::string_view::npos && value.find('@', scheme) != std::string_view::npos;
}

}  // namespace

bool is_storable_variable(std::string_view name, std::string_view value) {
  const bool listed = is_one_of(name, kNames) || starts_with_any(name, kPrefixes);
  const bool is_place = is_one_of(name, kPlaces) || (begins_as_a_path(value) && !is_one_of(name, kMeasured));
  return listed && !is_place && !names_a_secret(name) && !contains_any(value, kSecretValues) &&
         !has_credentials_in_url(value);
}

bool is_for_strangers(std::string_view name, std::string_view value) {
  return is_storable_variable(name, value) && starts_with_any(name, kSteering) && !is_one_of(name, kWhose) &&
         !contains_any(value, kSerials) && value.find('/') == std::string_view::npos;
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
