// The worker that serves calls of a library (docs/worker-wire.md): what `syslab judged` runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/callee.hpp"
#include "device/device.hpp"

namespace syslab::worker {

// Opens what is to be called, at the host's greeting; throws what is wrong with it. Its calls are queued on the stream,
// where their tensors lie, too; of calls without inputs they are the host's.
using OpenCallee = std::function<std::unique_ptr<Callee>(device::Stream)>;

// Until the host says bye or closes the pipe: `in` and `out` are its ends, usually standard input and output. The exit
// code. Takes nothing from the host but its messages, and knows of a call's inputs what shared memory holds.
int serve_calls(int in, int out, const std::string& name, const OpenCallee& open);

}  // namespace syslab::worker
