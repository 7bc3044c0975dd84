// Work recorded once and replayed without the host's part in launching it.
//
//   Capture captured = capture(stream, [&] { rung.forward(problem, args, workspace, stream); });
//   if (captured.graph) captured.graph->replay(stream);   // else captured.why says why not
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "device/device.hpp"

namespace syslab::device {

// An executable graph. Pointers and sizes that the work used are part of it: its memory must outlive it.
class Graph {
 public:
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();

  void replay(Stream stream) const;
  std::size_t nodes() const { return nodes_; }

 private:
  friend struct Capture capture(Stream stream, const std::function<void()>& work);
  Graph(void* executable, std::size_t nodes) : executable_(executable), nodes_(nodes) {}
  void* executable_ = nullptr;
  std::size_t nodes_ = 0;
};

// Thrown by what must not happen while a stream is captured: taking memory for the length of a call, which every replay
// would use again after it was given to somebody else.
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
Capture capture(Stream stream, const std::function<void()>& work);

}  // namespace syslab::device
