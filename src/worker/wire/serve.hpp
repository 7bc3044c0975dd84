// The worker's side of the wire: what `syslab worker` does.
#pragma once

#include <string>

namespace syslab::worker {

// Answers the host on `in` and `out` until `bye` or the end of the pipe, and returns the exit code: 0, or 4 when the
// host does not speak the wire format or is gone, or, after the case of a rank among several that did not end well, the
// number of the fault (core/rank_error.hpp). Experiments are looked up by id in Registry::global(), sealed or not.
//
// When `in`/`out` are the process's standard streams they are moved away first: a kernel's printf then goes to standard
// error and cannot end up between two frames, and nobody reads the host's orders by accident.
int serve(int in, int out);

// The GPUs that this process can use, or why it can use none, as JSON: what `syslab worker --probe` prints. Opens the
// CUDA driver, which the program itself never does.
std::string probed_gpus();

}  // namespace syslab::worker
