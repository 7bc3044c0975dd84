// Somebody's class on ranks of Python, timed by a benchmark of ours, and what it is timed beside in the same run: our
// strategies for torch and torch's own, around the same torch module (src/python/syslab_transformer.py), which has
// the parameters of our model. Rungs of the ladder train our model by kernels of ours, and say nothing about a class.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/law.hpp"
#include "core/call_channel.hpp"
#include "registry/registry.hpp"
#include "worker/cases/case_context.hpp"

namespace syslab {

struct TimedClass {
  std::string way;       // of syslab_timing.py: "data_parallel", "sharded_optimizer", "fully_sharded"
  std::string axis;      // of whose values one is the class's: "strategy"
  std::string of_class;  // that value: "naive"
  // What ours in torch there is for, of that axis: first its value, then the word of syslab_yardsticks.py.
  std::vector<std::pair<std::string, std::string>> ours;
  bool has_torchs_own = true;
  std::function<std::vector<check::Law>(std::shared_ptr<CallChannel>)> laws;
};

// Rungs "ours_in_torch" and "torchs_own", --mine NAME=file.py:Class, and which cases are theirs. `experiment` has its
// axes; its memory, refusal and body ask trains_in_python() first.
void time_classes(registry::Builder& experiment, const TimedClass& timed);

// Whether that is a class's name, or one of the two rungs: nothing of the ladder.
bool trains_in_python(std::string_view implementation);

void run_timed_class(worker::CaseContext& context, const TimedClass& timed);

// What a rank of torch takes at its highest, or the one process that repeats its steps, in bytes.
double timed_class_memory(const Params& params);

}  // namespace syslab
