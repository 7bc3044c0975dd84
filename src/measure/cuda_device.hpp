// A GPU as a place to time work: windows between two events, many of them queued before anything is waited for, each
// with the clock rate that the multiprocessors had in it.
//
//   CudaDevice device({device::Kind::cuda, 0});
//   subject.call = [&](int set) { rung.forward(problem, args[set], workspace, device.stream()); };
//   take_samples(protocol, subject, {device}, …);
//
// A window is laid into the stream like this; the gate opens once all of it is queued, so the host's part in launching
// is not timed, and the clock is read outside the events:
//
//   gate | what comes before | read clocks | event | the work | event | read clocks
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/nvml.hpp"
#include "device/buffer.hpp"
#include "device/cuda/sm_clock.hpp"
#include "device/event.hpp"
#include "device/gate.hpp"
#include "device/properties.hpp"
#include "device/stream.hpp"
#include "measure/device.hpp"

namespace syslab::measure {

class CudaDevice final : public Device {
 public:
  // Error(device) where there is no such GPU. With the CPU as its place everything goes by the CPU's side of device/,
  // for tests: no gate, no graphs, no clock rate.
  explicit CudaDevice(device::Place place);
  ~CudaDevice() override;

  device::Stream stream() const { return stream_.view(); }  // the work must queue here, or join it again
  device::Place place() const { return stream_.place(); }

  std::string name() const override;  // "GPU 0 (NVIDIA H100 80GB HBM3)"
  std::uint64_t last_level_cache() const override;
  int most_windows() const override;
  void queue_window(const std::function<void()>& work) override {
    queue_window([] {}, work);
  }
  // The same, and in front of the window what `before` queues, which is no part of its time.
  void queue_window(const std::function<void()>& before, const std::function<void()>& work);
  // Error(check) when work goes on, block after block, long after its windows have closed, or leaves them empty: it
  // runs on a stream of its own that does not join ours, so its time is not known.
  std::vector<Window> collect() override;
  // The first half of that, for a window that somebody else has timed and that has ended.
  void look_for_stragglers(Nanoseconds last_window);
  void synchronize() override;
  void flush(std::uint64_t bytes) override;
  bool captures_graphs() const override { return place().kind == device::Kind::cuda; }
  Captured capture(const std::function<void()>& work) override;
  GpuState state() const override;
  std::string blind_to() const override;

 private:
  struct Marks {
    device::Event begin, end;
  };
  std::int64_t flags_of_block();
  void measure_empty_windows();
  void look_for_emptiness(const std::vector<Window>& windows);

  device::OwnedStream stream_;
  device::DeviceProperties properties_;
  std::vector<Marks> marks_;
  device::SmClock clock_;
  device::Gate gate_;
  device::Buffer flushed_;
  Nvml nvml_;
  NvmlDevice nvml_device_ = nullptr;
  int queued_ = 0;                  // windows
  std::uint64_t expired_ = 0;       // gates, so far
  int blocks_past_gate_ = 0;        // with gates that expired, in a row
  int blocks_with_stragglers_ = 0;  // in a row
  int empty_blocks_ = 0;            // in a row
  Nanoseconds empty_window_{};      // half as much again as one takes
  int pattern_ = 0;
};

// Why clock throttling reasons are unavailable; empty if NVML reports them.
std::string blind_to_clocks(const Nvml& nvml, NvmlDevice device);

// The flags of what NVML says holds clocks down (core/nvml.hpp, GpuState::slowed_by).
std::int64_t flags_of_clocks(std::uint64_t reasons);

}  // namespace syslab::measure
