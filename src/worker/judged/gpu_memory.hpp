// Where the tensors of a judged call lie on a GPU, and whose clock is its time: SYSLAB_GPU_MEMORY in the lab's own
// environment.
#pragma once

#include <string>

namespace syslab::worker {

enum class GpuMemory {
  shared,  // in memory of the lab's, whose own stream takes the time (worker/judged/gpu_handover.hpp); else as `copied`
  copied,  // in copies that the judged process makes; its clock counts where it agrees with the lab's around all of
           // that
  trusted,  // the same, and its clock counts as it is
};

// What it is where nothing is asked for: of one's own file, since `shared` makes short calls longer by microseconds
// (reports/ledger/lab.md, "Handing a call to another process"), and of what others have handed in.
inline constexpr GpuMemory kGpuMemoryByDefault = GpuMemory::trusted;
inline constexpr const char* kGpuMemoryOfOthers = "shared";

// Error(usage) for another word.
GpuMemory gpu_memory_wanted();

// The word of the environment, if it has one, else kGpuMemoryOfOthers: for processes that judge what others have handed
// in. Error(usage) likewise.
std::string gpu_memory_of_others();

}  // namespace syslab::worker
