// A caching, stream-ordered allocator over large segments: freed memory is kept for work queued later on the same
// stream, so that a training step or a timed loop makes no driver allocation.
//
//   void* data = allocator_of(place).allocate(bytes, "scores", stream);
//   … queue work on `stream` …
//   allocator_of(place).release(data);   // no waiting: what is queued next on `stream` may have it
//
// Requests are rounded to 512 B. Small ones (≤ 1 MiB) are cut from segments of 2 MiB, larger ones from segments of
// their own size, at least 20 MiB; the smallest free block that fits is taken, split when the remainder is worth
// keeping, and merged with free neighbours when released. Blocks stay with the stream they were first allocated for. A
// block that other streams use too is returned once events on those streams have passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "device/memory_log.hpp"

namespace syslab::device {

// Where segments come from. An interface, so that the allocator can be tested without a GPU.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  virtual void* allocate(std::size_t bytes) = 0;  // null if there is no room
  virtual void release(void* data) noexcept = 0;
  // Returns a function that tells whether everything queued on `stream` so far has completed.
  virtual std::function<bool()> mark(Stream stream) = 0;
  virtual void synchronize() = 0;  // until all marks have passed
  virtual void room(std::uint64_t& free, std::uint64_t& total) = 0;
  virtual Place place() const = 0;
  // Segments stay until the allocator is destroyed because a graph that will be replayed holds their addresses.
  virtual bool keeps() const { return false; }
};

class CachingAllocator {
 public:
  CachingAllocator(std::unique_ptr<SegmentSource> source, MemoryLog& log);
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;
  ~CachingAllocator();  // frees all segments, even those with live blocks

  // Aligned to 512 B. If there is no room, cached segments are freed and the allocation is retried once before
  // Error(oom) with the bytes asked, free and total.
  void* allocate(std::size_t bytes, std::string_view tag, Stream stream,
                 MemoryCategory category = MemoryCategory::other);
  void release(void* data) noexcept;
  void used_on(void* data, Stream other);
  // Returns entirely free cached segments to the device; returns their bytes.
  std::uint64_t release_cached();

  struct Use {
    std::uint64_t asked = 0;                        // bytes of live requests
    std::uint64_t blocks = 0;                       // the same, rounded up to their blocks
    std::uint64_t reserved = 0;                     // bytes of segments
    std::int64_t segments = 0, segments_taken = 0;  // now, ever
  };
  Use use() const;
  MemoryLog& log() const { return log_; }

 private:
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0, asked = 0;
    void* stream = nullptr;
    bool small = false, taken = false;
    Block *before = nullptr, *after = nullptr;  // neighbours within the segment
    std::string tag;
    MemoryCategory category = MemoryCategory::other;
    std::vector<std::function<bool()>> marks;  // of other streams, when it came back
    std::vector<Stream> users;                 // other streams
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
    }
  };
  using Pool = std::set<Block*, BySize>;

  Pool& pool_of(const Block& block) { return free_[{block.stream, block.small}]; }
  Block* find(std::size_t bytes, bool small, void* stream);
  Block* new_segment(std::size_t bytes, bool small, void* stream);
  void split(Block* block, std::size_t bytes);
  void put_back(Block* block);
  Block* join(Block* left, Block* right);
  void reclaim_marked();
  std::uint64_t release_free_segments();

  mutable std::mutex mutex_;
  std::unique_ptr<SegmentSource> source_;
  MemoryLog& log_;
  std::map<std::pair<void*, bool>, Pool> free_;
  std::map<void*, std::unique_ptr<Block>> blocks_;  // all, by address
  std::vector<Block*> waiting_;                     // released, marks have not passed
  Use use_;
};

// The allocator of a GPU, created at first use and never destroyed. Error(device) if there is no such GPU.
CachingAllocator& allocator_of(Place place);

}  // namespace syslab::device
