// Calls of the worker protocol: tensors in one shared-memory segment, described by JSON (docs/worker-protocol.md,
// "Serving calls").
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor.hpp"
#include "core/units.hpp"
#include "core/value.hpp"

namespace syslab::worker {

// Where a tensor lies in the segment: `offset` bytes from its start to element (0, …, 0); strides count elements.
struct SharedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  Strides strides{};
  std::uint64_t offset = 0;
};

struct CallRequest {
  std::string function;
  Params options;
  std::vector<SharedTensor> inputs, outputs;
  std::uint64_t memory_bytes = 0;  // size of the segment now; it only grows
};

struct Returned {
  Nanoseconds elapsed{};  // by the worker's monotonic clock, device-synchronised, without transport
};

// Kinds: "exception" (the implementation raised), "unsupported", "oom", "protocol" (the call was not understood).
struct Failed {
  std::string kind, message, traceback;
};

Json to_json(const CallRequest& request);
// Error(comm) naming the field when it is neither, or is malformed.
std::variant<Returned, Failed> call_reply_from_json(const Json& json);

}  // namespace syslab::worker
