// What the runtime does not offer and the driver, which we do not link with, does: words that order streams of
// different processes, contexts besides the runtime's own, the size of another process's memory, memory that ends where
// addresses end, lines that were to stay in the L2.
//
// What waits for what.
//
//   write_word, await_word      Work queued after the wait sees the results of all work that the writing stream had
//                               queued before the write, which comes after a system-wide fence; the streams may be of
//                               different processes.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "device/cuda/cuda.cuh"
#include "device/cuda/runtime.hpp"

namespace syslab::device::runtime {
namespace {

template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const std::string asked = std::string("find the driver's ") + name;
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), asked,
        "cudaGetDriverEntryPointByVersion");
#else
  check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result), asked, "cudaGetDriverEntryPoint");
#endif
  if (found == nullptr || result != cudaDriverEntryPointSuccess) {
    throw Unsupported(std::string("the driver of this machine has no ") + name + ": a newer one is needed");
  }
  return reinterpret_cast<Function>(found);
}

// By its very symbol, where a plain name stands for functions of different arguments in different versions.
template <typename Function>
Function driver_symbol(const char* symbol) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = driver == nullptr ? nullptr : dlsym(driver, symbol);
  if (found == nullptr) throw Unsupported(std::string("the driver of this machine has no ") + symbol);
  return reinterpret_cast<Function>(found);  // the driver stays loaded: the runtime holds it
}

__global__ void nothing() {}
__global__ void touch(unsigned long long* words, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    words[i] += 1;
  }
}

void expect_driver(int error, const char* call, const char* asked = "order a stream by a word in memory") {
  if (error == 0) return;
  throw_cuda_error(asked, call, ("driver error " + std::to_string(error)).c_str(), "see CUresult in cuda.h");
}

}  // namespace

std::size_t shared_bytes(const void* data) {
  static const auto range =
      driver_symbol<int (*)(unsigned long long*, std::size_t*, unsigned long long)>("cuMemGetAddressRange_v2");
  unsigned long long first = 0;
  std::size_t bytes = 0;
  expect_driver(range(&first, &bytes, reinterpret_cast<std::uintptr_t>(data)), "cuMemGetAddressRange_v2",
                "ask for the size of another process's memory");
  return first + bytes - reinterpret_cast<std::uintptr_t>(data);
}

void* create_context(int gpu) {
  static const auto create = driver_symbol<int (*)(void**, unsigned, int)>("cuCtxCreate_v2");
  const char* const asked = "create a second context on a GPU";
  int device = 0;
  expect_driver(driver_symbol<int (*)(int*, int)>("cuDeviceGet")(&device, gpu), "cuDeviceGet", asked);
  void *before = enter_context(nullptr), *made = nullptr;
  const int error = create(&made, 0, device);
  leave_context(before);  // it was entered when it was made
  expect_driver(error, "cuCtxCreate_v2", asked);
  return made;
}

void destroy_context(void* context) noexcept {
  try {
    driver_symbol<int (*)(void*)>("cuCtxDestroy_v2")(context);
  } catch (const std::exception&) {  // the driver is gone, and it with it
  }
}

void* enter_context(void* context) {
  static const auto get = driver_symbol<int (*)(void**)>("cuCtxGetCurrent");
  static const auto set = driver_symbol<int (*)(void*)>("cuCtxSetCurrent");
  void* before = nullptr;
  expect_driver(get(&before), "cuCtxGetCurrent", "go to another context");
  if (context != nullptr) expect_driver(set(context), "cuCtxSetCurrent", "go to another context");
  return before;
}

void leave_context(void* before) noexcept {
  try {
    driver_symbol<int (*)(void*)>("cuCtxSetCurrent")(before);
  } catch (const std::exception&) {
  }
}

void run_nothing(void* stream) {
  nothing<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>();
  check(cudaGetLastError(), "run an empty kernel", "cudaLaunchKernel");
}

void run_touch(void* memory, std::size_t bytes, void* stream) {
  constexpr std::size_t kThreads = 256, kMostBlocks = 1024;
  const std::size_t words = bytes / sizeof(unsigned long long);
  const std::size_t blocks = words / kThreads < 1 ? 1 : words / kThreads > kMostBlocks ? kMostBlocks : words / kThreads;
  touch<<<static_cast<unsigned>(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<unsigned long long*>(memory), words);
  check(cudaGetLastError(), "run a kernel", "cudaLaunchKernel");
}

void write_word(void* stream, void* at, std::uint32_t value) {
  static const auto write =
      driver_function<int (*)(cudaStream_t, unsigned long long, std::uint32_t, unsigned)>("cuStreamWriteValue32");
  // No flag: the write comes after a system-wide fence.
  expect_driver(write(static_cast<cudaStream_t>(stream), reinterpret_cast<std::uintptr_t>(at), value, 0),
                "cuStreamWriteValue32");
}

void await_word(void* stream, const void* at, std::uint32_t value) {
  static const auto wait =
      driver_function<int (*)(cudaStream_t, unsigned long long, std::uint32_t, unsigned)>("cuStreamWaitValue32");
  constexpr unsigned kGreaterOrEqual = 0;  // CU_STREAM_WAIT_VALUE_GEQ: by the sign of the difference
  expect_driver(wait(static_cast<cudaStream_t>(stream), reinterpret_cast<std::uintptr_t>(at), value, kGreaterOrEqual),
                "cuStreamWaitValue32");
}

FencedMemory::Mapped map_fenced(int gpu, int count, std::size_t bytes) {
  const char* const asked = "map memory of a GPU at addresses of choice";
  static const auto granularity_of =
      driver_function<int (*)(std::size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags)>(
          "cuMemGetAllocationGranularity");
  static const auto reserve =
      driver_function<int (*)(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long)>(
          "cuMemAddressReserve");
  static const auto create = driver_function<int (*)(CUmemGenericAllocationHandle*, std::size_t,
                                                     const CUmemAllocationProp*, unsigned long long)>("cuMemCreate");
  static const auto map =
      driver_function<int (*)(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long)>(
          "cuMemMap");
  static const auto allow =
      driver_function<int (*)(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t)>("cuMemSetAccess");
  static const auto release = driver_function<int (*)(CUmemGenericAllocationHandle)>("cuMemRelease");

  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu};
  std::size_t unit = 0;
  expect_driver(granularity_of(&unit, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "cuMemGetAllocationGranularity",
                asked);
  FencedMemory::Mapped made;
  made.piece = (bytes + unit - 1) / unit * unit;
  made.stride = made.piece + unit;
  CUdeviceptr first = 0;
  expect_driver(reserve(&first, made.stride * static_cast<std::size_t>(count), 0, 0, 0), "cuMemAddressReserve", asked);
  made.data = reinterpret_cast<void*>(first);
  const std::size_t reserved = made.stride * static_cast<std::size_t>(count);
  try {
    for (; made.count < count; ++made.count) {
      const CUdeviceptr at = first + static_cast<std::size_t>(made.count) * made.stride;
      CUmemGenericAllocationHandle piece{};
      const int error = create(&piece, made.piece, &wanted, 0);
      if (error == CUDA_ERROR_OUT_OF_MEMORY) throw Error(ErrorKind::oom, "no room on the GPU for pieces of memory");
      expect_driver(error, "cuMemCreate", asked);
      const int mapped = map(at, made.piece, 0, piece, 0);
      release(piece);  // it stays as long as it is mapped
      expect_driver(mapped, "cuMemMap", asked);
      const CUmemAccessDesc access{wanted.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      const int allowed = allow(at, made.piece, &access, 1);
      if (allowed != 0) ++made.count;  // it is mapped
      expect_driver(allowed, "cuMemSetAccess", asked);
    }
  } catch (...) {
    unmap_fenced(made, reserved);
    throw;
  }
  return made;
}

void unmap_fenced(const FencedMemory::Mapped& gone, std::size_t reserved) noexcept {
  try {
    static const auto unmap = driver_function<int (*)(CUdeviceptr, std::size_t)>("cuMemUnmap");
    static const auto free = driver_function<int (*)(CUdeviceptr, std::size_t)>("cuMemAddressFree");
    cudaDeviceSynchronize();  // work that is under way may use it; after a failure there is none
    const auto first = reinterpret_cast<CUdeviceptr>(gone.data);
    for (int i = 0; i < gone.count; ++i) unmap(first + static_cast<std::size_t>(i) * gone.stride, gone.piece);
    free(first, reserved);
  } catch (const std::exception&) {  // the driver is gone, and it with it
  }
}

void forget_persisting_lines() {
  static const auto reset = driver_function<int (*)()>("cuCtxResetPersistingL2Cache");
  expect_driver(reset(), "cuCtxResetPersistingL2Cache", "take lines of the L2 for any others again");
}

}  // namespace syslab::device::runtime
