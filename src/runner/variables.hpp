// Which environment variables are provenance and may be stored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/text/json.hpp"

namespace syslab::runner {

// True for names by an allow-list of prefixes (CUDA_, NCCL_, OMP_, SLURM_, …) unless name or value looks like a secret,
// or it only says where something lies (SYSLAB_PYTHON, CUDA_HOME): that changes no time, and tells of somebody's
// folders. What is loaded from there does (LD_PRELOAD, NCCL_TOPO_FILE): its variable stays.
bool is_storable_variable(std::string_view name, std::string_view value);

// Of the storable ones those that strangers may read and that steer what is computed and how: no job, no host, no path,
// no serial of a GPU.
bool is_for_strangers(std::string_view name, std::string_view value);

// The storable ones of "NAME=value" entries, as an object.
Json storable_variables(const std::vector<std::string>& entries);

}  // namespace syslab::runner
