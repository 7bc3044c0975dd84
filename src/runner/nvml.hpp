// GPUs as NVML sees them: no CUDA context is opened, and nothing is linked. The library comes with the driver and is
// opened at run time; its few functions are declared here by ourselves, so no header of it is needed either.
#pragma once

#include "core/json.hpp"

namespace syslab::runner {

// {"gpu": [{name, uuid, pci, memory_bytes, …}], "cuda": {"driver", "driver_cuda"}}; "gpu" is empty and "cuda" holds the
// reason under "missing" where there is no library, no driver or no GPU. Never throws for these.
Json nvml_facts();

}  // namespace syslab::runner
