#include "device/cuda/cuda_error.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"

namespace syslab::device {
namespace {

struct Remedy {
  std::string_view error, text;
};

constexpr std::string_view kContextLost =
    "a kernel before this call went wrong and this process has lost its GPU: start a new process, and run it under "
    "compute-sanitizer to see which kernel and where";

constexpr std::array kRemedies = {
    Remedy{"cudaErrorMemoryAllocation", "take a smaller problem or free memory that other processes hold"},
    Remedy{"cudaErrorNoKernelImageForDevice",
           "this build has no machine code for this GPU: configure with -Dgpu_archs=<its architecture>"},
    Remedy{"cudaErrorInvalidDeviceFunction",
           "this build has no machine code for this GPU: configure with -Dgpu_archs=<its architecture>"},
    Remedy{"cudaErrorInsufficientDriver",
           "there is no NVIDIA driver, or one older than the CUDA runtime of this build: `syslab doctor` says which; "
           "install or "
           "update the driver, or build with an older toolkit"},
    Remedy{"cudaErrorNoDevice", "there is no GPU that this process may use; CUDA_VISIBLE_DEVICES may hide it"},
    Remedy{"cudaErrorInvalidDevice", "`syslab doctor` lists the GPUs of this machine"},
    Remedy{"cudaErrorDevicesUnavailable", "another process holds the GPU for itself: wait for it, or take another GPU"},
    Remedy{"cudaErrorInvalidResourceHandle",
           "the stream, event or kernel belongs to another GPU or is gone already: use one of the current GPU"},
    Remedy{"cudaErrorContextIsDestroyed", "the GPU's context is gone: the process is ending or was reset"},
    Remedy{"cudaErrorInvalidConfiguration", "the launch asks for more threads or shared memory than this GPU has"},
    Remedy{"cudaErrorLaunchOutOfResources", "the launch asks for more registers or threads than this GPU has"},
    Remedy{"cudaErrorInvalidValue", "an argument is out of its range: a pointer of no GPU, a size, or a launch shape"},
    Remedy{"cudaErrorIllegalAddress", kContextLost},
    Remedy{"cudaErrorMisalignedAddress", kContextLost},
    Remedy{"cudaErrorLaunchFailure", kContextLost},
    Remedy{"cudaErrorIllegalInstruction", kContextLost},
    Remedy{"cudaErrorHardwareStackError", kContextLost},
    Remedy{"cudaErrorInvalidAddressSpace", kContextLost},
    Remedy{"cudaErrorInvalidPc", kContextLost},
    Remedy{"cudaErrorAssert", kContextLost},
    Remedy{"cudaErrorLaunchTimeout", "a watchdog ended the kernel: use a GPU that drives no display"},
    Remedy{"cudaErrorECCUncorrectable", "the GPU's memory is at fault: use another GPU and tell who runs the machine"},
    Remedy{"cudaErrorSystemNotReady", "the machine's GPU services are not up: see `nvidia-smi`"},
    Remedy{"cudaErrorStreamCaptureUnsupported", "this call cannot be captured in a graph: time it without graphs"},
    Remedy{"cudaErrorStreamCaptureInvalidated", "the work cannot be captured in a graph: time it without graphs"},
    Remedy{"cudaErrorStreamCaptureImplicit", "work on the default stream cannot be captured: use the stream given"},
};

}  // namespace

std::string_view remedy_for(std::string_view error_name) {
  for (const Remedy& remedy : kRemedies) {
    if (remedy.error == error_name) return remedy.text;
  }
  return "see `syslab doctor`, and run under compute-sanitizer to learn more";
}

void throw_cuda_error(std::string_view asked, std::string_view call, const char* error_name, const char* error_text) {
  const std::string_view name = error_name == nullptr ? "unknown error" : error_name;
  const ErrorKind kind = name == "cudaErrorMemoryAllocation" ? ErrorKind::oom : ErrorKind::device;
  throw Error(
      kind,
      fmt::format("could not {}: {} ({}); {}", asked, name, error_text == nullptr ? "" : error_text, remedy_for(name)),
      std::string(call));
}

void throw_out_of_memory(std::uint64_t bytes, std::string_view tag, std::string_view where, std::uint64_t free,
                         std::uint64_t total, std::string_view call) {
  throw Error(ErrorKind::oom,
              fmt::format("could not allocate {} B for '{}' on {} ({} B of {} B are free); {}", bytes, tag, where, free,
                          total, remedy_for("cudaErrorMemoryAllocation")),
              std::string(call));
}

void throw_no_cuda(std::string_view asked) {
  throw Error(ErrorKind::device, fmt::format("could not {}: this build has no CUDA; configure with -Dcuda=enabled on a "
                                             "machine that has nvcc, or use the CPU",
                                             asked));
}

}  // namespace syslab::device
