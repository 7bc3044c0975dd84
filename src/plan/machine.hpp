// The machine that a plan is made for, as far as it decides which cases can run: its GPU, or why there is none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syslab::plan {

struct Machine {
  // The GPU that cases run on. `sm` is its compute capability, 90 for 9.0.
  std::string gpu;  // "NVIDIA H100 80GB HBM3"; empty: there is none
  int sm = 0;
  std::uint64_t gpu_memory_bytes = 0;
  int gpus = 0;                // that can be used: ranks that can have one each
  double gpu_bytes_per_s = 0;  // of its memory, by clock and width; 0: not known
  int ranks = 0;               // of a case, that there is a place for; 0: as many as are asked for
  bool is_any = false;  // no machine in particular: no case is refused for want of a GPU, of more of them, or of a
                        // build that knows them
  std::string why_no_gpu = "this machine was not asked for one";  // the fact and the remedy; where there is none

  bool has_gpu() const { return !gpu.empty(); }
  static Machine any() {
    Machine machine;
    machine.gpu = "any GPU";
    machine.is_any = true;
    return machine;
  }
};

}  // namespace syslab::plan
