#include "device/cuda/graph_memory.hpp"

#include <cstdlib>
#include <utility>

#include "core/error.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"
#include "device/event.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::device {
namespace {

thread_local std::shared_ptr<GraphMemory> lent;

constexpr std::size_t kAligned = 512;  // as the allocator promises

// GPU memory, even while a stream of this thread is captured; host memory for the CPU twin.
class PlainSegments final : public SegmentSource {
 public:
  explicit PlainSegments(Place place) : place_(place) {}

  void* allocate(std::size_t bytes) override {
    if (place_.kind == Kind::cpu) return std::aligned_alloc(kAligned, bytes);  // segments are multiples of MiB
    const CurrentDevice current(place_);
    return runtime::allocate_in_capture(bytes);
  }
  void release(void* data) noexcept override {
    if (place_.kind == Kind::cpu) {
      std::free(data);
    } else {
      runtime::release(data);
    }
  }
  std::function<bool()> mark(Stream stream) override {
    auto event = std::make_shared<Event>(place_of(stream));
    event->record(stream);
    return [event] { return event->done(); };
  }
  void synchronize() override { device::synchronize(place_); }
  void room(std::uint64_t& free, std::uint64_t& total) override {
    const MemoryUse use = memory_use(place_);
    free = use.free;
    total = use.total;
  }
  Place place() const override { return place_; }

 private:
  Place place_;
};

}  // namespace

// Common to all sources during a capture: it cannot be waited for, and another stream's part is certain to have passed
// only when the whole capture is recorded.
class GraphMemory::Segments final : public SegmentSource {
 public:
  Segments(std::unique_ptr<SegmentSource> source, std::shared_ptr<Progress> progress)
      : source_(std::move(source)), progress_(std::move(progress)) {}

  void* allocate(std::size_t bytes) override { return source_->allocate(bytes); }
  void release(void* data) noexcept override { source_->release(data); }
  std::function<bool()> mark(Stream stream) override {
    if (progress_->lendings == 0) return source_->mark(stream);
    return [progress = progress_, now = progress_->ended] { return progress->ended != now; };
  }
  void synchronize() override {
    if (progress_->lendings == 0) source_->synchronize();
  }
  void room(std::uint64_t& free, std::uint64_t& total) override { source_->room(free, total); }
  Place place() const override { return source_->place(); }
  bool keeps() const override { return true; }

 private:
  std::unique_ptr<SegmentSource> source_;
  std::shared_ptr<Progress> progress_;
};

GraphMemory::GraphMemory(Place place) : GraphMemory(std::make_unique<PlainSegments>(place), MemoryLog::of(place)) {}

GraphMemory::GraphMemory(std::unique_ptr<SegmentSource> source, MemoryLog& log)
    : place_(source->place()), allocator_(std::make_unique<Segments>(std::move(source), progress_), log) {}

GraphMemory::~GraphMemory() {
  try {
    synchronize(place_);  // a replay may still be running
  } catch (...) {         // whoever waits for that work reports the failure
  }
}

std::shared_ptr<GraphMemory> GraphMemory::lent_to(Stream stream, Place place) {
  if (lent == nullptr || !(lent->place_ == place)) return nullptr;
  return stream.kind == Kind::cpu || is_capturing(stream) ? lent : nullptr;
}

GraphMemory::Lending::Lending(std::shared_ptr<GraphMemory> memory) {
  if (memory == nullptr) throw Error(ErrorKind::internal, "no memory was given to lend to a capture");
  before_ = std::exchange(lent, std::move(memory));
  ++lent->progress_->lendings;
}

GraphMemory::Lending::~Lending() {
  --lent->progress_->lendings;
  ++lent->progress_->ended;
  lent = std::move(before_);
}

}  // namespace syslab::device
