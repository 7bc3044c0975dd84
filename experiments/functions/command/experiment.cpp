// command: somebody's program, timed whole or by a number that it prints. Axes and cases come from the command line
// (src/session/command_selection.hpp).
#include "registry/registry.hpp"
#include "worker/cases/command_case.hpp"
#include "worker/cases/command_params.hpp"

namespace syslab::experiment_command {
namespace {

registry::Experiment describe() {
  return registry::experiment("command")
      .title("Any program, by its process or by what it prints")
      .question(
          "How long does a program of yours take, or how fast does it say that it is? --command './bench {n}' "
          "-a n=1k:16k, and --reads 'time: {} ms' for a number that it prints (docs/any-command.md)")
      .tags({"function"})
      .skip_if("its cases come from --command",
               [](const Params& params, std::string_view) { return !params.has(worker::kCommandReads); })
      .metric("time", "s", "median time of one process, or the time that it prints, with its 95 % interval")
      .metric("rate", "1/s", "what it prints, where that is a rate, in its own unit")
      .accepts_mine()
      .runs(worker::run_command_case);
}
SYSLAB_EXPERIMENT(command, describe);

}  // namespace
}  // namespace syslab::experiment_command
