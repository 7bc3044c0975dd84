#include <unistd.h>

#include "cli/verbs/verbs.hpp"
#include "session/console.hpp"
#include "worker/wire/serve.hpp"

namespace syslab::cli {

// A worker's exit code is part of the worker's wire format, in which 4 means the same as here.
Exit execute(const Context& context, const WorkerOptions& options) {
  if (options.probe) {
    context.console.print(worker::probed_gpus() + "\n");
    return Exit::well;
  }
  return worker::serve(STDIN_FILENO, STDOUT_FILENO) == 0 ? Exit::well : Exit::tool;
}

}  // namespace syslab::cli
