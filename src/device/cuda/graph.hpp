// Work recorded once and replayed without the host's launch cost.
//
//   Capture captured = capture(stream, [&] { rung.forward(problem, args, workspace, stream); });
//   if (captured.graph) captured.graph->replay(stream);   // else captured.why says why not
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "device/device.hpp"

namespace syslab::device {

class GraphMemory;

// An executable graph. It contains the pointers and sizes that the work used, so that memory must outlive it. The graph
// itself keeps memory allocated inside the capture.
class Graph {
 public:
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();

  void replay(Stream stream) const;
  std::size_t nodes() const { return nodes_; }

 private:
  friend struct Capture capture(Stream stream, const std::function<void()>& work, std::shared_ptr<GraphMemory> memory);
  Graph(void* executable, std::size_t nodes, std::shared_ptr<GraphMemory> memory)
      : executable_(executable), nodes_(nodes), memory_(std::move(memory)) {}
  void* executable_ = nullptr;
  std::size_t nodes_ = 0;
  std::shared_ptr<GraphMemory> memory_;  // null: the work allocates none
};

// Thrown when work allocates temporary memory during a capture without a pool: every replay would use that memory after
// it was reused elsewhere.
class NotCapturable : public Error {
 public:
  using Error::Error;
};

struct Capture {
  std::optional<Graph> graph;
  std::string why;  // why there is no graph: "…; the work waits for the device"
};

// Runs `work` once, recording what it queues on `stream` (and on streams that fork from it and join again) instead of
// executing it. There is no graph if the work cannot be captured: it waits for the device or allocates from it, queues
// on another stream, queues nothing, or the device cannot capture (the CPU). Other exceptions from `work` pass through.
// The stream is usable afterwards in every case.
//
// With `memory` (device/cuda/graph_memory.hpp) the work may take Buffers on the streams that are captured: they come
// from `memory`, which the graph keeps. In that case the device is synchronised first and its allocator's unused
// segments are freed.
Capture capture(Stream stream, const std::function<void()>& work, std::shared_ptr<GraphMemory> memory = nullptr);

}  // namespace syslab::device
