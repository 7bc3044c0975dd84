// Memory that work takes while it is captured, kept for as long as the graph may be replayed.
//
//   auto memory = std::make_shared<GraphMemory>(place);
//   Capture captured = capture(stream, [&] { step.run(stream); }, memory);   // Buffers inside come from `memory`
//   captured.graph->replay(stream);                                           // whatever others allocate in between
//
// A replay uses the addresses of the capture. So a pool of its own serves it: a block that is released inside the
// capture is given out again inside it, in the order of its stream, as the device's allocator does with work that runs;
// no segment leaves the pool before the graphs that were captured with it and the buffers that came from it are gone.
//
// Segments come from cudaMalloc during the capture, which CUDA allows a thread in relaxed mode. To reserve them before,
// from the peak of a run that was not captured, would spare nothing: how blocks fall into segments would have to be
// equal too, and a step that takes another path would fail in the middle. Just before the capture the device's
// allocator gives back what it holds unused, or one training step would hold its activations twice.
#pragma once

#include <memory>

#include "device/allocator.hpp"
#include "device/device.hpp"

namespace syslab::device {

// Several captures may share a pool (a forward and a backward pass, with what is saved between them). Then what
// escaped from one is safe in the next while its Buffer lives, and their replays must follow each other in one order.
// Work keeps nothing that it takes inside a capture for calls after it: run it once before.
class GraphMemory {
 public:
  explicit GraphMemory(Place place);
  // For tests: segments of a device that can be looked into.
  GraphMemory(std::unique_ptr<SegmentSource> source, MemoryLog& log);
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory();  // waits for the device; not while this thread captures

  Place place() const { return place_; }
  CachingAllocator::Use use() const { return allocator_.use(); }

  // While it lives, Buffers of this thread on streams of the place that are being captured come from the pool. The CPU
  // captures nothing: there, its twin, all Buffers with a stream do. May be nested; the inner one counts.
  class Lending {
   public:
    explicit Lending(std::shared_ptr<GraphMemory> memory);
    Lending(const Lending&) = delete;
    Lending& operator=(const Lending&) = delete;
    ~Lending();

   private:
    std::shared_ptr<GraphMemory> before_;
  };

 private:
  friend class Buffer;
  // The pool that a Buffer on this stream comes from; null: none is lent.
  static std::shared_ptr<GraphMemory> lent_to(Stream stream, Place place);

  class Segments;
  Place place_;
  // Captures that have begun or ended, and whether one is going on. Shared with marks, which the allocator keeps.
  struct Progress {
    int lendings = 0;  // now
    int ended = 0;     // ever
  };
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  CachingAllocator allocator_;
};

}  // namespace syslab::device
