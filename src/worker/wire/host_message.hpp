// What the host says to a worker, frame by frame (docs/worker-wire.md).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/process/pipe.hpp"
#include "core/text/json.hpp"

namespace syslab::worker {

struct HostMessage {
  std::string type;
  std::shared_ptr<const Json> json;  // whole
};

// Waits for the next. Nothing after "bye" and at the end of the pipe. Error(comm) for a frame that is no JSON object
// with a type.
std::optional<HostMessage> next_host_message(FrameReader& reader);

}  // namespace syslab::worker
