#include "measure/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "device/cuda/graph.hpp"
#include "device/cuda/nvtx.hpp"
#include "device/memory.hpp"

namespace syslab::measure {
namespace {

constexpr int kMostWindows = 32;

// A gate that opens by itself means that the work makes the host wait for the device. If that keeps happening, gates
// only cost time: the windows are timed without gates and flagged.
constexpr int kBlocksToGiveUpGates = 2;

// The host may be delayed once between two waits. Work that itself keeps a device busy does so in every block.
constexpr int kBlocksToBlame = 3;
constexpr Nanoseconds kStragglerFloor = std::chrono::microseconds(200);
constexpr int kStragglerShare = 5;  // of the last window: a fifth

class CapturedCalls final : public Graph {
 public:
  CapturedCalls(device::Graph graph, device::Stream stream) : graph_(std::move(graph)), stream_(stream) {}
  void replay() override { graph_.replay(stream_); }

 private:
  device::Graph graph_;
  device::Stream stream_;
};

}  // namespace

std::int64_t flags_of_clocks(std::uint64_t reasons) {
  std::int64_t flags = 0;
  if ((reasons & kSlowedByPowerCap) != 0) flags |= kPowerCapped;
  if ((reasons & kSlowedByHeat) != 0) flags |= kHot;
  if ((reasons & kSlowedByHardware) != 0) flags |= kHardwareSlowdown;
  return flags;
}

std::string blind_to_clocks(const Nvml& nvml, NvmlDevice device) {
  const std::string flags = "power caps, heat and slowdowns by the hardware: ";
  if (!nvml.usable()) return flags + nvml.why();
  if (device == nullptr) return flags + "NVML knows no GPU of this UUID";
  return nvml.slowed_by(device) ? std::string() : flags + "NVML does not tell them of this GPU";
}

CudaDevice::CudaDevice(device::Place place)
    : stream_(place),
      properties_(device::properties(place)),
      clock_(stream_.view(), kMostWindows),
      gate_(stream_.view()) {
  for (int i = 0; i < kMostWindows; ++i) {
    marks_.push_back({device::Event(place, device::Timing::yes), device::Event(place, device::Timing::yes)});
  }
  nvml_device_ = nvml_.device(properties_.uuid);
  if (place.kind == device::Kind::cuda) measure_empty_windows();
}

// Seen on an H100: two events with nothing between them are 1.3 us apart, with an empty kernel 3.3 us at least.
void CudaDevice::measure_empty_windows() {
  constexpr int kWindows = 8;
  empty_window_ = {};                        // these windows are judged by nothing
  for (int round = 0; round < 2; ++round) {  // the first loads modules
    for (int i = 0; i < kWindows; ++i) queue_window([] {});
    std::vector<Nanoseconds> times;
    for (const Window& window : collect()) times.push_back(window.elapsed);
    std::sort(times.begin(), times.end());
    if (round == 1) empty_window_ = times[times.size() / 2] * 3 / 2;
  }
  blocks_past_gate_ = blocks_with_stragglers_ = empty_blocks_ = 0;
}

CudaDevice::~CudaDevice() = default;

std::string CudaDevice::name() const {
  return place().kind == device::Kind::cpu ? std::string("CPU")
                                           : fmt::format("{} ({})", to_string(place()), properties_.name);
}

std::uint64_t CudaDevice::last_level_cache() const {
  return properties_.cache_bytes > 0 ? properties_.cache_bytes : host_last_level_cache();
}

int CudaDevice::most_windows() const { return kMostWindows; }

void CudaDevice::queue_window(const std::function<void()>& before, const std::function<void()>& work) {
  if (queued_ == kMostWindows) {
    throw Error(ErrorKind::internal, fmt::format("{} windows at most may be queued on {}", kMostWindows, name()));
  }
  struct Opener {
    device::Gate& gate;
    ~Opener() { gate.open(); }  // also when the work throws
  } opener{gate_};
  if (blocks_past_gate_ < kBlocksToGiveUpGates) gate_.close();
  const device::NvtxRange range("sample");
  Marks& marks = marks_[static_cast<std::size_t>(queued_)];
  before();
  clock_.begin(queued_);
  marks.begin.record(stream_);
  work();
  marks.end.record(stream_);
  clock_.end(queued_);
  ++queued_;
}

std::vector<Window> CudaDevice::collect() {
  const int count = std::exchange(queued_, 0);
  if (count == 0) {
    synchronize();
    return {};
  }
  // Asked while the GPU is working: afterwards it is idle, and reports that.
  std::int64_t flags = flags_of_clocks(nvml_.slowed_by(nvml_device_).value_or(0));
  const Marks& last = marks_[static_cast<std::size_t>(count) - 1];
  device::synchronize(stream_.view());
  look_for_stragglers(elapsed(last.begin, last.end));
  flags |= flags_of_block();
  const std::vector<std::optional<double>> clocks = clock_.read();
  std::vector<Window> windows;
  for (int i = 0; i < count; ++i) {
    const Marks& marks = marks_[static_cast<std::size_t>(i)];
    windows.push_back(
        {.elapsed = elapsed(marks.begin, marks.end), .clock_hz = clocks[static_cast<std::size_t>(i)], .flags = flags});
  }
  look_for_emptiness(windows);
  return windows;
}

// It is not known which of a block's gates expired, so all its windows are flagged.
std::int64_t CudaDevice::flags_of_block() {
  if (blocks_past_gate_ >= kBlocksToGiveUpGates) return kHostInWindow;
  const std::uint64_t before = std::exchange(expired_, gate_.expired());
  const bool expired = expired_ != before;
  blocks_past_gate_ = expired ? blocks_past_gate_ + 1 : 0;
  return expired ? kHostInWindow : 0;
}

void CudaDevice::look_for_stragglers(Nanoseconds last_window) {
  const Nanoseconds closed = steady_clock().now();
  synchronize();
  const Nanoseconds late = steady_clock().now() - closed;
  if (late <= std::max(kStragglerFloor, last_window / kStragglerShare)) {
    blocks_with_stragglers_ = 0;
    return;
  }
  if (++blocks_with_stragglers_ < kBlocksToBlame) return;
  blocks_with_stragglers_ = 0;
  throw Error(
      ErrorKind::check,
      fmt::format("work went on for {} after its window of {} had closed on {}: it runs on a stream of its own, "
                  "so its time is not known; queue it on the stream given, or let that wait for it",
                  format_duration(late), format_duration(last_window), name()));
}

void CudaDevice::look_for_emptiness(const std::vector<Window>& windows) {
  if (empty_window_ == Nanoseconds{}) return;
  const auto empty = [&] {
    return std::all_of(windows.begin(), windows.end(),
                       [this](const Window& window) { return window.elapsed <= empty_window_; });
  };
  empty_blocks_ = empty() ? empty_blocks_ + 1 : 0;
  if (empty_blocks_ < kBlocksToBlame) return;
  // A copy of a few KiB takes 2 us, an empty window as long on a GPU whose clocks are low, as they may have been when
  // empty windows were measured: only windows as short as empty ones are now leave no doubt.
  measure_empty_windows();
  if (!empty()) return;
  throw Error(
      ErrorKind::check,
      fmt::format("the work queued nothing between its window's events on {}: it runs on a stream of its own, so "
                  "its time is not known; queue it on the stream given",
                  name()));
}

void CudaDevice::synchronize() { device::synchronize(place()); }

void CudaDevice::flush(std::uint64_t bytes) {
  if (flushed_.bytes() < bytes) flushed_ = device::Buffer(bytes, "cache flush", stream_.view());
  pattern_ = (pattern_ + 1) % 256;
  device::fill_bytes(flushed_.data(), pattern_, bytes, stream_.view());
}

Captured CudaDevice::capture(const std::function<void()>& work) {
  device::Capture captured = device::capture(stream_.view(), work);
  if (!captured.graph) return {nullptr, std::move(captured.why)};
  return {std::make_unique<CapturedCalls>(std::move(*captured.graph), stream_.view()), {}};
}

GpuState CudaDevice::state() const {
  if (place().kind == device::Kind::cpu || nvml_device_ == nullptr) return {};
  return nvml_.state(nvml_device_);
}

std::string CudaDevice::blind_to() const {
  return place().kind == device::Kind::cpu ? std::string() : blind_to_clocks(nvml_, nvml_device_);
}

}  // namespace syslab::measure
