// Memory that work allocates while it is captured, kept for as long as the graph may be replayed.
//
//   auto memory = std::make_shared<GraphMemory>(place);
//   Capture captured = capture(stream, [&] { step.run(stream); }, memory);   // Buffers inside come from `memory`
//   captured.graph->replay(stream);                                           // whatever others allocate in between
//
// A replay uses the addresses of the capture. So it gets its own pool: a block released inside the capture is reused
// inside it in stream order, as the device's allocator does for running work; no segment leaves the pool before the
// graphs captured with it and the buffers allocated from it are gone.
//
// Segments come from cudaMalloc during the capture, which CUDA allows a thread in relaxed mode. Reserving them
// beforehand from the peak of an uncaptured run would not help: blocks would have to fall into segments in the same
// way, and a step that takes another path would fail halfway. Just before the capture the device's allocator frees its
// unused segments, or one training step would hold its activations twice.
#pragma once

#include <memory>

#include "device/allocator.hpp"
#include "device/device.hpp"

namespace syslab::device {

// Several captures may share a pool (a forward and a backward pass, with what is saved between them). Memory that
// outlives one capture is then safe in the next while its Buffer lives, and their replays must always run in the same
// order. Work must not keep memory allocated inside a capture for later calls: run it once before.
class GraphMemory {
 public:
  explicit GraphMemory(Place place);
  // For tests: segments of a device that can be inspected.
  GraphMemory(std::unique_ptr<SegmentSource> source, MemoryLog& log);
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory();  // waits for the device; not while this thread captures

  Place place() const { return place_; }
  CachingAllocator::Use use() const { return allocator_.use(); }

  // While it lives, Buffers of this thread on streams of the place that are being captured come from the pool. The CPU
  // cannot capture: its twin serves all Buffers with a stream. May be nested; the innermost applies.
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
  // The pool for a Buffer on this stream; null if none is lent.
  static std::shared_ptr<GraphMemory> lent_to(Stream stream, Place place);

  class Segments;
  Place place_;
  // Captures begun and ended, and whether one is active. Shared with marks, which the allocator keeps.
  struct Progress {
    int lendings = 0;  // now
    int ended = 0;     // ever
  };
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  CachingAllocator allocator_;
};

}  // namespace syslab::device
