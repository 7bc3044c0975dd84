// GPUs as NVML sees them (core/nvml.hpp), as facts of an environment.
#pragma once

#include "core/text/json.hpp"

namespace syslab::runner {

// {"gpu": [{name, uuid, pci, memory_bytes, …}], "cuda": {"driver", "driver_cuda"}}; without library, driver or GPU,
// "gpu" is empty and "cuda" has the reason under "missing". Never throws for these.
Json nvml_facts();

}  // namespace syslab::runner
