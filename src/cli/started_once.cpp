#include "cli/started_once.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>

#include "core/error.hpp"

namespace syslab::cli {
namespace {

struct Launcher {
  const char* name;
  const char* size;  // how many it started
  const char* only;  // which others set under this name, too: a variable that only this one sets
};

// Of Slurm the step's tasks: a batch script that was given many starts what it starts once.
constexpr std::array<Launcher, 4> kLaunchers{{{"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", nullptr},
                                              {"an MPI launcher", "PMI_SIZE", nullptr},
                                              {"torchrun", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
                                              {"srun", "SLURM_STEP_NUM_TASKS", nullptr}}};

}  // namespace

void require_started_once() {
  for (const Launcher& launcher : kLaunchers) {
    const char* size = std::getenv(launcher.size);
    if (size == nullptr || (launcher.only != nullptr && std::getenv(launcher.only) == nullptr)) continue;
    if (std::atoi(size) <= 1) continue;
    throw Error(
        ErrorKind::usage,
        fmt::format("this is one of {} processes that {} started ({}={}), and each would make a run of its own; start "
                    "syslab once: the ranks of a case are processes that it starts itself, on this host (-a "
                    "world_size={})",
                    size, launcher.name, launcher.size, size, size));
  }
}

}  // namespace syslab::cli
