// Calls of the worker's wire format: tensors in one shared-memory segment, described by JSON (docs/worker-wire.md,
// "Serving calls").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/finding_kind.hpp"
#include "core/tensor.hpp"
#include "core/text/units.hpp"
#include "core/value.hpp"

namespace syslab::worker {

// Where a tensor lies in the segment: `offset` bytes from its start to element (0, …, 0); strides count elements.
struct SharedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  Strides strides{};
  std::uint64_t offset = 0;
  bool lent = false;  // an output that is room to work in on a GPU: nobody carries what it holds
};

// A user's function on the wire, and its gradients. Operators go by names of their own.
inline constexpr std::string_view kFunction = "function";
inline constexpr std::string_view kFunctionBackward = "function_backward";

// A call that computes nothing and goes the way of any other, so that what it takes is the handing over alone: without
// the copying of results, or with it. `none`: a call like any other.
enum class EmptyCall { none, plain, with_results };

struct CallRequest {
  std::string function;
  Params options;
  std::vector<SharedTensor> inputs, outputs;
  std::uint64_t memory_bytes = 0;  // size of the segment now; it only grows
  bool release = false;            // the worker says when it is ready, and waits for the doorbell
  // On a GPU: the host's memory there that offsets are in (device/peer_memory.hpp), else empty; and the step of the
  // doorbell by which the call's early inputs are there. One more releases it, two more say that its outputs are taken.
  std::string gpu_memory;
  std::uint32_t step = 0;
  bool guarded = false;               // behind each tensor lies a page that nobody may touch (shared_segment.hpp)
  bool graph = false;                 // on a GPU: what is timed is the call captured as a graph
  bool kernels = false;               // on a GPU: it is not timed, and the worker tells which kernels it ran
  EmptyCall empty = EmptyCall::none;  // of a worker that serves "empty"

  bool is_of_function() const { return function == kFunction || function == kFunctionBackward; }
};

// Everything is prepared but the content of inputs. Those named `early` it needs before the clock starts.
struct Prepared {
  std::vector<std::string> early;
};

// On a GPU: all of the call is queued there, and its outputs will be at these places of the worker's own memory; those
// without a handle in the host's.
struct Queued {
  struct Place {
    std::string handle;
    std::uint64_t offset = 0;
  };
  std::vector<Place> outputs;
};

// Which kernels calls ran on a GPU, each once, in the order of first launches, as the process tells that ran them: a
// hint for people. Where it cannot tell, why.
struct KernelsOfCall {
  struct Kernel {
    std::string name;
    std::int64_t launches = 0;
    bool operator==(const Kernel&) const = default;
  };
  std::vector<Kernel> kernels;
  std::string why;

  void add(const KernelsOfCall& more);
};
Json to_json(const KernelsOfCall& told);

struct Returned {
  Nanoseconds elapsed{};  // by the worker's own clock, device-synchronised, without transport
  // Of a GPU while it ran, where the worker knows: its clock rate, and flags of measure/device.hpp.
  std::optional<double> clock_hz;
  std::int64_t flags = 0;
  std::optional<KernelsOfCall> kernels;
};

enum class FailedKind {
  exception,  // the implementation raised
  unsupported,
  oom,
  check,     // what it did was wrong
  device,    // a GPU failed under it: no further call is made
  protocol,  // the call was not understood
};
std::string_view to_string(FailedKind kind);

struct Failed {
  FailedKind kind = FailedKind::exception;
  std::string message, traceback;
  FindingKind finding = FindingKind::raised;  // of `check` and `exception`
  std::optional<Lack> lacks{};                // of `exception`: a claim
};

Json to_json(const CallRequest& request);
CallRequest call_request_from_json(const Json& json);  // Error(comm) naming the field that is wrong
// Error(comm) naming the field when it is none of them, or is malformed.
std::variant<Returned, Failed, Prepared, Queued> call_reply_from_json(const Json& json);

}  // namespace syslab::worker
