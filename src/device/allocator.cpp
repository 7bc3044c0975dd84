#include "device/allocator.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/integers.hpp"
#include "device/cuda/cuda_error.hpp"
#include "device/cuda/launch.hpp"
#include "device/cuda/runtime.hpp"
#include "device/event.hpp"
#include "device/stream.hpp"

namespace syslab::device {
namespace {

constexpr std::size_t kGrain = 512;
constexpr std::size_t kSmall = std::size_t{1} << 20;
constexpr std::size_t kSmallSegment = std::size_t{2} << 20;
constexpr std::size_t kLeastSegment = std::size_t{20} << 20;
constexpr std::size_t kSegmentGrain = std::size_t{2} << 20;  // what cudaMalloc maps at least
constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() - 2 * kLeastSegment;

std::size_t segment_for(std::size_t bytes, bool small) {
  if (small) return kSmallSegment;
  return std::max(kLeastSegment, round_up(bytes, kSegmentGrain));
}

class GpuSegments final : public SegmentSource {
 public:
  explicit GpuSegments(Place place) : place_(place) {}

  void* allocate(std::size_t bytes) override {
    const CurrentDevice current(place_);
    return runtime::allocate(bytes);
  }
  void release(void* data) noexcept override { runtime::release(data); }
  std::function<bool()> mark(Stream stream) override {
    auto event = std::make_shared<Event>(place_of(stream));
    event->record(stream);
    return [event] { return event->done(); };
  }
  void synchronize() override { device::synchronize(place_); }
  void room(std::uint64_t& free, std::uint64_t& total) override {
    const CurrentDevice current(place_);
    runtime::memory_use(free, total);
  }
  Place place() const override { return place_; }

 private:
  Place place_;
};

}  // namespace

CachingAllocator::CachingAllocator(std::unique_ptr<SegmentSource> source, MemoryLog& log)
    : source_(std::move(source)), log_(log) {}

CachingAllocator::~CachingAllocator() {
  for (auto& [data, block] : blocks_) {
    if (block->before == nullptr) source_->release(data);
  }
  log_.record_reserved(-static_cast<std::int64_t>(use_.reserved));
}

void* CachingAllocator::allocate(std::size_t bytes, std::string_view tag, Stream stream, MemoryCategory category) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  reclaim_marked();
  Block* block = nullptr;
  if (bytes <= kMost) {
    const std::size_t wanted = round_up(bytes, kGrain);
    const bool small = wanted <= kSmall;
    block = find(wanted, small, stream.handle);
    if (block == nullptr) block = new_segment(wanted, small, stream.handle);
    if (block != nullptr) split(block, wanted);
  }
  if (block == nullptr) {
    std::uint64_t free = 0, total = 0;
    source_->room(free, total);
    throw_out_of_memory(bytes, tag, to_string(source_->place()), free, total, "cudaMalloc");
  }
  block->tag = tag;
  block->category = category;
  log_.record(static_cast<std::int64_t>(bytes), tag, category);
  block->taken = true;
  block->asked = bytes;
  use_.asked += bytes;
  use_.blocks += block->bytes;
  return block->data;
}

// The smallest block that fits, taken out of its pool.
CachingAllocator::Block* CachingAllocator::find(std::size_t bytes, bool small, void* stream) {
  const auto pool = free_.find({stream, small});
  if (pool == free_.end()) return nullptr;
  Block wanted;
  wanted.bytes = bytes;
  const auto found = pool->second.lower_bound(&wanted);
  if (found == pool->second.end()) return nullptr;
  Block* block = *found;
  pool->second.erase(found);
  return block;
}

CachingAllocator::Block* CachingAllocator::new_segment(std::size_t bytes, bool small, void* stream) {
  const std::size_t whole = segment_for(bytes, small);
  void* data = source_->allocate(whole);
  if (data == nullptr) {
    // Blocks that wait for other streams are returned too.
    if (!waiting_.empty()) {
      source_->synchronize();
      reclaim_marked();
    }
    if (Block* block = find(bytes, small, stream); block != nullptr) return block;
    release_free_segments();
    data = source_->allocate(whole);
    if (data == nullptr) return nullptr;
  }
  try {
    auto block = std::make_unique<Block>();
    block->data = static_cast<std::byte*>(data);
    block->bytes = whole;
    block->stream = stream;
    block->small = small;
    Block* made = block.get();
    blocks_.emplace(data, std::move(block));
    use_.reserved += whole;
    ++use_.segments;
    ++use_.segments_taken;
    log_.record_reserved(static_cast<std::int64_t>(whole));
    return made;
  } catch (...) {
    source_->release(data);
    throw;
  }
}

void CachingAllocator::split(Block* block, std::size_t bytes) {
  const std::size_t rest = block->bytes - bytes;
  const bool worth_keeping = block->small ? rest >= kGrain : rest > kSmall;
  if (!worth_keeping) return;
  auto tail = std::make_unique<Block>();
  tail->data = block->data + bytes;
  tail->bytes = rest;
  tail->stream = block->stream;
  tail->small = block->small;
  tail->before = block;
  tail->after = block->after;
  if (tail->after != nullptr) tail->after->before = tail.get();
  block->after = tail.get();
  block->bytes = bytes;
  pool_of(*tail).insert(tail.get());
  blocks_.emplace(tail->data, std::move(tail));
}

void CachingAllocator::release(void* data) noexcept {
  if (data == nullptr) return;
  try {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(data);
    if (found == blocks_.end() || !found->second->taken) return;
    Block* block = found->second.get();
    block->taken = false;
    use_.asked -= block->asked;
    use_.blocks -= block->bytes;
    log_.record(-static_cast<std::int64_t>(block->asked), block->tag, block->category);
    for (const Stream user : std::exchange(block->users, {})) block->marks.push_back(source_->mark(user));
    if (block->marks.empty()) {
      put_back(block);
    } else {
      waiting_.push_back(block);
    }
  } catch (...) {  // the block is not reused, which wastes it and harms nobody
  }
}

void CachingAllocator::used_on(void* data, Stream other) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(data);
  if (found == blocks_.end() || !found->second->taken) {
    throw Error(ErrorKind::internal, "used_on() was told of memory that this allocator has not given out");
  }
  Block& block = *found->second;
  if (other.handle == block.stream) return;
  const bool known =
      std::any_of(block.users.begin(), block.users.end(), [&](Stream user) { return user.handle == other.handle; });
  if (!known) block.users.push_back(other);
}

void CachingAllocator::put_back(Block* block) {
  const auto is_free = [this](Block* neighbour) {
    if (neighbour == nullptr || neighbour->taken) return false;
    return pool_of(*neighbour).count(neighbour) != 0;  // not while it waits for a mark
  };
  if (is_free(block->before)) {
    pool_of(*block->before).erase(block->before);
    block = join(block->before, block);
  }
  if (is_free(block->after)) {
    pool_of(*block->after).erase(block->after);
    block = join(block, block->after);
  }
  pool_of(*block).insert(block);
}

CachingAllocator::Block* CachingAllocator::join(Block* left, Block* right) {
  left->bytes += right->bytes;
  left->after = right->after;
  if (left->after != nullptr) left->after->before = left;
  blocks_.erase(right->data);
  return left;
}

void CachingAllocator::reclaim_marked() {
  for (std::size_t i = 0; i < waiting_.size();) {
    Block* block = waiting_[i];
    std::erase_if(block->marks, [](const std::function<bool()>& passed) { return passed(); });
    if (!block->marks.empty()) {
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    put_back(block);
  }
}

std::uint64_t CachingAllocator::release_cached() {
  const std::lock_guard lock(mutex_);
  source_->synchronize();
  reclaim_marked();
  return release_free_segments();
}

// A free block without neighbours is an entire segment.
std::uint64_t CachingAllocator::release_free_segments() {
  if (source_->keeps()) return 0;
  std::uint64_t released = 0;
  for (auto& [key, pool] : free_) {
    for (auto at = pool.begin(); at != pool.end();) {
      Block* block = *at;
      if (block->before != nullptr || block->after != nullptr) {
        ++at;
        continue;
      }
      at = pool.erase(at);
      source_->release(block->data);
      released += block->bytes;
      use_.reserved -= block->bytes;
      --use_.segments;
      log_.record_reserved(-static_cast<std::int64_t>(block->bytes));
      blocks_.erase(block->data);
    }
  }
  return released;
}

CachingAllocator::Use CachingAllocator::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

CachingAllocator& allocator_of(Place place) {
  static auto* mutex = new std::mutex;
  static auto* allocators = new std::map<int, CachingAllocator>;
  if (place.kind == Kind::cpu) throw Error(ErrorKind::internal, "the CPU's memory comes from no caching allocator");
  const std::lock_guard lock(*mutex);
  const auto found = allocators->find(place.index);
  if (found != allocators->end()) return found->second;
  const CurrentDevice current(place);  // throws if there is no such GPU
  return allocators->try_emplace(place.index, std::make_unique<GpuSegments>(place), MemoryLog::of(place)).first->second;
}

}  // namespace syslab::device
