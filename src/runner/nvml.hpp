// GPUs as NVML sees them (core/nvml.hpp), as facts of an environment.
#pragma once

#include "core/json.hpp"

namespace syslab::runner {

// {"gpu": [{name, uuid, pci, memory_bytes, …}], "cuda": {"driver", "driver_cuda"}}; "gpu" is empty and "cuda" holds the
// reason under "missing" where there is no library, no driver or no GPU. Never throws for these.
Json nvml_facts();

}  // namespace syslab::runner
