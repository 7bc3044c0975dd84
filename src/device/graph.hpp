// Work recorded once and replayed without the host's part in launching it.
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

// An executable graph. Pointers and sizes that the work used are part of it: its memory must outlive it. What was taken
// inside the capture is kept by the graph itself.
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
  std::shared_ptr<GraphMemory> memory_;  // null: the work takes none
};

// Thrown by what must not happen while a stream is captured: taking memory for the length of a call that the capture
// was lent no pool for. Every replay would use it again after it was given to somebody else.
class NotCapturable : public Error {
 public:
  using Error::Error;
};

struct Capture {
  std::optional<Graph> graph;
  std::string why;  // there is none: "…; the work waits for the device"
};

// Runs `work` once, recording what it queues on `stream` (and on streams that fork from it and join again) instead of
// executing it. No graph when the work cannot be captured: it waits for the device or allocates from it, queues on
// another stream, queues nothing, or the device captures nothing (the CPU). What `work` throws for reasons of its own
// passes through. The stream is usable afterwards in every case.
//
// With `memory` (device/graph_memory.hpp) the work may take Buffers on the streams that are captured: they come from
// there, and the graph keeps it. Then the device is waited for first, and what its allocator holds unused is given
// back.
Capture capture(Stream stream, const std::function<void()>& work, std::shared_ptr<GraphMemory> memory = nullptr);

}  // namespace syslab::device
