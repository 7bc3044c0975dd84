#include "measure/floor.hpp"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <map>

#include "core/nvml.hpp"
#include "core/text/units.hpp"

namespace syslab::measure {
namespace {

constexpr double kSlack = 0.05;
constexpr double kCachesOfABigCall = 4;

constexpr double kNoProcessorIsFaster = 7e9;  // Hz
// Two fused multiply-adds and two additions a cycle: more than any core does.
constexpr int kOperationsALane = 6;

constexpr int kOfMatrixUnit = 2048;  // AMX does half as many in bf16

// Of a core in a cycle; 0: not known.
int operations_a_cycle(DType dtype) {
#if defined(__x86_64__)
  constexpr unsigned kAvx2 = 1U << 5, kAvx512 = 1U << 16;                            // EBX of leaf 7
  constexpr unsigned kAmxBf16 = 1U << 22, kAmxAny = kAmxBf16 | 1U << 24 | 1U << 25;  // EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return 0;
  if ((d & kAmxAny) != 0) return kOfMatrixUnit;
  const int bits = (b & kAvx512) != 0 ? 512 : (b & kAvx2) != 0 ? 256 : 128;
  return kOperationsALane * bits / static_cast<int>(8 * size_of(dtype));
#else
  (void)dtype;
  return 0;
#endif
}

// Dense half-precision operations of a multiprocessor in a cycle, from the architectures' white papers.
const std::map<int, int> kTensorCores = {{70, 1024}, {75, 1024}, {80, 2048}, {86, 1024},
                                         {89, 1024}, {90, 4096}, {100, 8192}};
constexpr int kNvmlSmClock = 1, kNvmlMemoryClock = 2;

std::optional<double> highest_clock(const Nvml& nvml, NvmlDevice gpu, int which) {
  unsigned mhz = 0;
  if (!nvml.ask("nvmlDeviceGetMaxClockInfo", gpu, which, &mhz) || mhz == 0) return std::nullopt;
  return 1e6 * mhz;
}

std::string duration(double seconds) {
  return format_duration(Nanoseconds(static_cast<Nanoseconds::rep>(1e9 * seconds)));
}

}  // namespace

Peaks host_peaks(DType dtype) {
  Peaks peaks;
  const int processors = ::get_nprocs_conf(), each = operations_a_cycle(dtype);
  peaks.flops_per_second = kNoProcessorIsFaster * processors * each;
  peaks.flops_by =
      fmt::format("{} processors × {} operations a cycle × {:.2f} GHz", processors, each, kNoProcessorIsFaster * 1e-9);
  return peaks;
}

Peaks gpu_peaks(const device::DeviceProperties& gpu, DType dtype) {
  Peaks peaks;
  const Nvml nvml;
  NvmlDevice device = nvml.usable() ? nvml.device(gpu.uuid) : nullptr;
  if (device == nullptr) return peaks;
  const auto clock = highest_clock(nvml, device, kNvmlSmClock), memory = highest_clock(nvml, device, kNvmlMemoryClock);
  if (const auto found = kTensorCores.find(gpu.sm); found != kTensorCores.end() && clock) {
    const int each = size_of(dtype) == 2 ? found->second : found->second / 2;
    peaks.flops_per_second = *clock * gpu.multiprocessors * each;
    peaks.flops_by = fmt::format("{} multiprocessors × {} operations a cycle × {:.2f} GHz", gpu.multiprocessors, each,
                                 *clock * 1e-9);
  }
  unsigned bits = 0;
  if (memory && nvml.ask("nvmlDeviceGetMemoryBusWidth", device, &bits)) {
    peaks.bytes_per_second = 2 * *memory * bits / 8;
    peaks.bytes_by = fmt::format("2 × {:.2f} GHz × {} bits", *memory * 1e-9, bits);
  }
  return peaks;
}

std::optional<Floor> floor_of(const NeededWork& work, const Peaks& peaks) {
  std::optional<Floor> floor;
  const auto raise = [&](double amount, double rate, const std::string& told) {
    if (!(amount > 0) || !(rate > 0) || (floor && floor->seconds >= amount / rate)) return;
    floor = Floor{amount / rate, told};
  };
  raise(work.flops, peaks.flops_per_second,
        fmt::format("{:.4g} operations at most {:.4g} a second ({})", work.flops, peaks.flops_per_second,
                    peaks.flops_by));
  const auto cache = static_cast<double>(work.last_level_cache_bytes);
  if (work.cold && cache > 0 && work.bytes >= kCachesOfABigCall * cache) {
    raise(work.bytes - cache, peaks.bytes_per_second,
          fmt::format("{:.4g} bytes, less {:.4g} that the cache may keep, at most {:.4g} a second ({})", work.bytes,
                      cache, peaks.bytes_per_second, peaks.bytes_by));
  }
  return floor;
}

std::optional<std::string> below_floor(double seconds, const Floor& floor) {
  if (!(seconds < (1 - kSlack) * floor.seconds)) return std::nullopt;
  return fmt::format("{} is below {}, less than which nothing takes that does the work: {}", duration(seconds),
                     duration(floor.seconds), floor.arithmetic);
}

}  // namespace syslab::measure
