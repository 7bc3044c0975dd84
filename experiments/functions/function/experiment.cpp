// function: somebody's function, of any arguments, against a reference of theirs. Axes and cases come from the files
// that a command names (src/session/function_selection.hpp).
#include "registry/registry.hpp"
#include "worker/cases/function_case.hpp"
#include "worker/cases/function_cases.hpp"

namespace syslab::experiment_function {
namespace {

registry::Experiment describe() {
  return registry::experiment("function")
      .title("Any function against its reference")
      .question(
          "Does a function of yours return what its reference does, on arguments that nobody has seen, and how long "
          "does it "
          "take? --mine NAME=file.py:function --reference file.py:function --inputs file.py:cases "
          "(docs/any-function.md)")
      .tags({"function"})
      .skip_if("its cases come from --reference and --inputs",
               [](const Params& params, std::string_view) { return !params.has(worker::kFunctionProblem); })
      .metric("time", "s", "median time of one call, with its 95 % interval")
      .metric("tflops", "TFLOP/s", "the case's `flops`, where it says so, over the time")
      .metric("gbps", "GB/s", "the case's `bytes`, where it says so, over the time")
      .accepts_mine()
      .runs(worker::run_function_case);
}
SYSLAB_EXPERIMENT(function, describe);

}  // namespace
}  // namespace syslab::experiment_function
