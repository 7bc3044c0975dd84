#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <utility>

#include "device/buffer.hpp"
#include "device/parallel.hpp"
#include "measure/device.hpp"

namespace syslab::measure {
namespace {

class HostDevice final : public Device {
 public:
  explicit HostDevice(Clock& clock) : clock_(clock) {}

  std::string name() const override { return "CPU"; }
  std::uint64_t last_level_cache() const override { return host_last_level_cache(); }
  int most_windows() const override { return 1; }

  void queue_window(const std::function<void()>& work) override {
    const Nanoseconds start = clock_.now();
    work();
    windows_.push_back({.elapsed = clock_.now() - start, .clock_hz = std::nullopt});
  }
  std::vector<Window> collect() override { return std::exchange(windows_, {}); }
  void synchronize() override {}

  // One stripe for each thread, so that the private caches of all cores are overwritten as well.
  void flush(std::uint64_t bytes) override {
    if (flushed_.bytes() < bytes) flushed_ = device::Buffer(bytes, "cache flush");
    ++pattern_;
    const int stripes = device::thread_count();
    const std::uint64_t stripe = bytes / static_cast<std::uint64_t>(stripes);
    device::parallel_for(stripes, [&](std::int64_t index, int) {
      std::memset(flushed_.as<std::byte>() + static_cast<std::uint64_t>(index) * stripe, pattern_, stripe);
    });
  }

 private:
  Clock& clock_;
  std::vector<Window> windows_;
  device::Buffer flushed_;
  unsigned char pattern_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_host_device(Clock& clock) { return std::make_unique<HostDevice>(clock); }

std::uint64_t host_last_level_cache() {
  // sysfs gives the cache that this CPU shares; sysconf, on some hosts, the sum over a socket of which we may use only
  // a part.
  for (int level = 4; level >= 0; --level) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", level));
    std::string text;
    if (!(file >> text)) continue;
    if (!text.empty() && (text.back() == 'K' || text.back() == 'M')) text += 'i';
    if (const auto bytes = parse_bytes(text); bytes && *bytes > 0) return *bytes;
  }
  const long told = sysconf(_SC_LEVEL3_CACHE_SIZE);
  constexpr std::uint64_t kUnknown = 32U << 20;
  return told > 0 ? static_cast<std::uint64_t>(told) : kUnknown;
}

}  // namespace syslab::measure
