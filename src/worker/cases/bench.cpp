#include "worker/cases/bench.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "device/allocator.hpp"
#include "device/blas.hpp"
#include "device/cuda/gpu_probe.hpp"
#include "device/cuda/launch.hpp"
#include "device/parallel.hpp"
#include "device/properties.hpp"
#include "measure/cuda_device.hpp"

namespace syslab::worker {
namespace {

void require_device(const CaseRequest& request, device::Kind kind) {
  if (request.device != kind) {
    throw Unsupported(fmt::format("'{}' runs on {} and was asked for on {}; choose --device {}", request.implementation,
                                  to_string(kind), to_string(request.device), to_string(kind)));
  }
  if (kind == device::Kind::cuda && device::gpu_count() == 0) {
    throw Error(ErrorKind::device,
                fmt::format("'{}' needs a GPU: {}", request.implementation, device::probe_gpus().why_none));
  }
  if (kind == device::Kind::cuda && request.device_index >= device::gpu_count()) {
    throw Unsupported(fmt::format("needs {} GPUs", request.device_index + 1));
  }
}

Json facts_of(device::Place place) {
  const device::DeviceProperties gpu = device::properties(place);
  const device::GpuProbe probe = device::probe_gpus();
  return {{"name", gpu.name},
          {"uuid", gpu.uuid},
          {"sm", gpu.sm},
          {"multiprocessors", gpu.multiprocessors},
          {"runtime", probe.runtime_version},
          {"driver", probe.driver_version}};
}

}  // namespace

Bench::Bench(const CaseRequest& request, device::Kind device, bool in_another_process)
    : computes_on_(request.device), gpu_{device::Kind::cuda, request.device_index} {
  if (!in_another_process) require_device(request, device);
  if (device == device::Kind::cpu) {
    device_ = measure::make_host_device();
    return;
  }
  // Memory that earlier cases of this process left cached belongs to their streams. Without it this case begins as in a
  // fresh process.
  device::allocator_of(gpu_).release_cached();
  auto gpu = std::make_unique<measure::CudaDevice>(gpu_);
  stream_ = gpu->stream();
  device_ = std::move(gpu);
}

measure::Peaks Bench::peaks(DType dtype) const {
  if (computes_on_ == DeviceKind::cpu) return measure::host_peaks(dtype);
  if (device::gpu_count() <= gpu_.index) return {};
  return measure::gpu_peaks(device::properties(gpu_), dtype);
}

Json Bench::facts() const {
  if (stream().kind == device::Kind::cpu) {
    Json facts{{"device", to_string(computes_on_)}, {"threads", device::thread_count()}, {"blas", device::blas_name()}};
    if (computes_on_ == DeviceKind::cuda && gpu_.index < device::gpu_count()) facts["gpu"] = facts_of(gpu_);
    return facts;
  }
  const device::CachingAllocator& allocator = device::allocator_of(gpu_);
  const device::CachingAllocator::Use use = allocator.use();
  Json facts{{"device", "cuda"},
             {"gpu", facts_of(gpu_)},
             {"allocator",
              {{"live_bytes", use.asked},
               {"library_bytes", allocator.log().library_bytes()},
               {"reserved_bytes", use.reserved},
               {"peak_reserved_bytes", allocator.log().peak_reserved_bytes()},
               {"segments_taken", use.segments_taken}}}};
  if (const std::string blind = device_->blind_to(); !blind.empty()) facts["flags_missing"] = blind;
  return facts;
}

}  // namespace syslab::worker
