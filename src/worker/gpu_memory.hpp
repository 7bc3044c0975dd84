// Where the tensors of a judged call lie on a GPU, and whose clock is its time: SYSLAB_GPU_MEMORY in the lab's own
// environment.
#pragma once

namespace syslab::worker {

enum class GpuMemory {
  shared,   // in memory of the lab's, whose own stream takes the time (worker/gpu_handover.hpp); else as `copied`
  copied,   // in copies that the judged process makes; its clock counts where it agrees with the lab's around all of
            // that
  trusted,  // the same, and its clock counts as it is
};

// What it is where nothing is asked for. `shared` once its times have been seen on a GPU (docs/performance/lab.md,
// "Handing a call to another process").
inline constexpr GpuMemory kGpuMemoryByDefault = GpuMemory::trusted;

// Error(usage) for another word.
GpuMemory gpu_memory_wanted();

}  // namespace syslab::worker
