// Where an allocator under test takes its segments from.
#pragma once

#include <cstdlib>
#include <map>
#include <set>

#include "device/allocator.hpp"

namespace syslab::device {

inline constexpr std::size_t kMi = std::size_t{1} << 20;

// A device of `total` bytes whose streams are done when a test says so.
class FakeSegments final : public SegmentSource {
 public:
  FakeSegments(std::size_t total, Place place) : total_(total), place_(place) {}
  void* allocate(std::size_t bytes) override {
    ++asked;
    if (held + bytes > total_) return nullptr;
    void* data = std::aligned_alloc(512, bytes);
    sizes_[data] = bytes;
    held += bytes;
    return data;
  }
  void release(void* data) noexcept override {
    ++given_back;
    held -= sizes_.at(data);
    sizes_.erase(data);
    std::free(data);
  }
  std::function<bool()> mark(Stream stream) override {
    return [this, stream] { return busy.count(stream.handle) == 0; };
  }
  void synchronize() override {
    ++waits;
    busy.clear();
  }
  void room(std::uint64_t& free, std::uint64_t& total) override {
    free = total_ - held;
    total = total_;
  }
  Place place() const override { return place_; }

  std::size_t held = 0;
  int asked = 0, waits = 0, given_back = 0;
  std::set<void*> busy;  // streams whose work is not done

 private:
  std::size_t total_;
  Place place_;
  std::map<void*, std::size_t> sizes_;
};

}  // namespace syslab::device
