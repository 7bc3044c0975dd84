// CUDA's runtime behind plain functions; what only the driver has is in driver.cu.
//
// What waits for what. Streams are made with cudaStreamNonBlocking, so the default stream orders nothing between them;
// only these do:
//
//   record_event, stream_wait   Work queued after the wait sees the results of all work queued before the record
//                               (landed), and may overwrite what that work read (left). A wait is for the event's
//                               last record when the wait is queued: a later record does not change it.
//   synchronize_*, *_done       The same between a stream or an event and the host.
//   destroy_stream              Waits for the stream: memory ordered by it may go to a stream that gets its handle.
#include "device/cuda/runtime.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "core/error.hpp"
#include "device/cuda/cuda.cuh"

namespace syslab::device {

void check_launch(std::string_view kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw_cuda_error("launch kernel '" + std::string(kernel) + "'", "cudaLaunchKernel", cudaGetErrorName(error),
                   cudaGetErrorString(error));
}

namespace runtime {
namespace {

cudaStream_t as_stream(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t as_event(void* handle) { return static_cast<cudaEvent_t>(handle); }

// Errors while resources are released are dropped: nobody can handle them, and the next launch must not report them.
void forget(cudaError_t error) {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
}

// Lets this thread ask for an event's state, or allocate, while one of its streams is being captured.
class RelaxedCapture {
 public:
  RelaxedCapture() { forget(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { forget(cudaThreadExchangeStreamCaptureMode(&mode_)); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")";
}

// Whether this error comes from stream capture, not from a GPU that has failed.
bool breaks_capture_only(cudaError_t error) {
  return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
}

// The GPU of each of our own streams. Asking CUDA while a stream is captured fails and invalidates the capture. Never
// destroyed: streams of static storage duration may be destroyed after it would be.
class StreamList {
 public:
  void add(void* stream, int device) {
    const std::lock_guard lock(mutex_);
    devices_[stream] = device;
  }
  void remove(void* stream) {
    const std::lock_guard lock(mutex_);
    devices_.erase(stream);
  }
  std::optional<int> find(void* stream) const {
    const std::lock_guard lock(mutex_);
    const auto found = devices_.find(stream);
    return found == devices_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<void*, int> devices_;
};

StreamList& own_streams() {
  static auto* list = new StreamList;
  return *list;
}

// Whether this process has a context on a GPU, by the driver itself if it is loaded at all. Until then all memory is
// host memory; asking the runtime about a pointer would create a context (half a second, half a GiB) just to say so.
bool cuda_in_use() {
  static std::atomic<bool> seen = false;
  if (seen) return true;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  const auto state = reinterpret_cast<int (*)(int, unsigned*, int*)>(dlsym(driver, "cuDevicePrimaryCtxGetState"));
  const auto context_of_thread = reinterpret_cast<int (*)(void**)>(dlsym(driver, "cuCtxGetCurrent"));
  int gpus = 0;
  if (count == nullptr || state == nullptr || context_of_thread == nullptr || count(&gpus) != 0) gpus = 0;
  void* context = nullptr;
  if (gpus > 0 && context_of_thread(&context) == 0 && context != nullptr) seen = true;
  for (int gpu = 0; gpu < gpus && !seen; ++gpu) {
    unsigned flags = 0;
    int active = 0;
    if (state(gpu, &flags, &active) == 0 && active != 0) seen = true;
  }
  dlclose(driver);
  return seen;
}

bool out_of_room(cudaError_t error, std::string_view asked, std::string_view call) {
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    return true;
  }
  check(error, asked, call);
  return false;
}

}  // namespace

bool present() { return true; }

int device_count() noexcept {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    forget(error);
    return 0;
  }
  return count;
}

int current() {
  int index = 0;
  check(cudaGetDevice(&index), "ask for the current GPU", "cudaGetDevice");
  return index;
}

void make_current(int index) {
  check(cudaSetDevice(index), "make GPU " + std::to_string(index) + " the current one", "cudaSetDevice");
}

void synchronize_device() { check(cudaDeviceSynchronize(), "wait for all streams of a GPU", "cudaDeviceSynchronize"); }

void* create_stream(bool urgent) {
  cudaStream_t stream = nullptr;
  if (urgent) {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "ask for the priorities of streams",
          "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), "create a stream",
          "cudaStreamCreateWithPriority");
  } else {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "create a stream", "cudaStreamCreateWithFlags");
  }
  own_streams().add(stream, current());
  return stream;
}

void destroy_stream(void* stream) noexcept {
  own_streams().remove(stream);
  forget(cudaStreamSynchronize(as_stream(stream)));
  forget(cudaStreamDestroy(as_stream(stream)));
}

void synchronize_stream(void* stream) {
  check(cudaStreamSynchronize(as_stream(stream)), "wait for a stream", "cudaStreamSynchronize");
}

bool stream_done(void* stream) {
  const cudaError_t error = cudaStreamQuery(as_stream(stream));
  if (error == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(error, "ask for the state of a stream", "cudaStreamQuery");
  return true;
}

int stream_device(void* stream) {
  // The default streams (null, and its two named handles) belong to the current GPU.
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return current();
  if (const std::optional<int> own = own_streams().find(stream)) return *own;
  // A stream of other code. Whoever captures it has made its GPU current; otherwise nothing could be launched.
  if (stream_capturing(stream)) return current();
  int index = 0;
#if CUDART_VERSION >= 12080
  check(cudaStreamGetDevice(as_stream(stream), &index), "ask which GPU a stream is of", "cudaStreamGetDevice");
#else
  // Before CUDA 12.8 only the driver can tell: by the stream's context, and the GPU of that.
  void *get_context = nullptr, *push = nullptr, *pop = nullptr, *get_device = nullptr, *context = nullptr;
  const auto entry = [](const char* name, void** function) {
    check(cudaGetDriverEntryPoint(name, function, cudaEnableDefault), "find a function of the driver", name);
  };
  entry("cuStreamGetCtx", &get_context);
  entry("cuCtxPushCurrent", &push);
  entry("cuCtxPopCurrent", &pop);
  entry("cuCtxGetDevice", &get_device);
  int failed = reinterpret_cast<int (*)(void*, void**)>(get_context)(stream, &context);
  if (failed == 0) failed = reinterpret_cast<int (*)(void*)>(push)(context);
  if (failed == 0) {
    failed = reinterpret_cast<int (*)(int*)>(get_device)(&index);
    reinterpret_cast<int (*)(void**)>(pop)(&context);
  }
  if (failed != 0) check(cudaErrorInvalidResourceHandle, "ask which GPU a stream is of", "cuStreamGetCtx");
#endif
  return index;
}

bool stream_capturing(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(as_stream(stream), &status), "ask whether a stream is captured", "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void* create_event(bool timing) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming), "create an event",
        "cudaEventCreateWithFlags");
  return event;
}

void destroy_event(void* event) noexcept { forget(cudaEventDestroy(as_event(event))); }

void record_event(void* event, void* stream) {
  check(cudaEventRecord(as_event(event), as_stream(stream)), "record an event", "cudaEventRecord");
}

void stream_wait(void* stream, void* event) {
  check(cudaStreamWaitEvent(as_stream(stream), as_event(event), 0), "let a stream wait for an event",
        "cudaStreamWaitEvent");
}

void synchronize_event(void* event) {
  check(cudaEventSynchronize(as_event(event)), "wait for an event", "cudaEventSynchronize");
}

bool event_done(void* event) {
  const RelaxedCapture relaxed;
  const cudaError_t error = cudaEventQuery(as_event(event));
  if (error == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(error, "ask for the state of an event", "cudaEventQuery");
  return true;
}

double milliseconds_between(void* begin, void* end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, as_event(begin), as_event(end)), "read the time between two events",
        "cudaEventElapsedTime");
  return static_cast<double>(milliseconds);
}

std::string begin_capture(void* stream) {
  // Of this thread only: other threads of the process may go on using the GPU.
  const cudaError_t error = cudaStreamBeginCapture(as_stream(stream), cudaStreamCaptureModeThreadLocal);
  if (error == cudaSuccess) return {};
  if (!breaks_capture_only(error)) check(error, "begin to capture a graph", "cudaStreamBeginCapture");
  forget(error);
  return text_of(error);
}

Captured end_capture(void* stream) {
  Captured captured;
  cudaGraph_t graph = nullptr;
  if (const cudaError_t error = cudaStreamEndCapture(as_stream(stream), &graph); error != cudaSuccess) {
    if (!breaks_capture_only(error)) check(error, "capture a graph", "cudaStreamEndCapture");
    forget(error);
    captured.why = text_of(error) +
                   ": the work waits for the device, allocates from it, or uses another stream "
                   "that does not join this one";
    captured.broken = true;
    return captured;
  }
  cudaGraphExec_t executable = nullptr;
  cudaError_t error = cudaGraphGetNodes(graph, nullptr, &captured.nodes);
  if (error == cudaSuccess && captured.nodes > 0) error = cudaGraphInstantiate(&executable, graph, 0);
  forget(cudaGraphDestroy(graph));
  check(error, "make a captured graph executable", "cudaGraphInstantiate");
  captured.executable = executable;
  if (executable == nullptr) captured.why = "the work queued nothing on the stream that was captured";
  return captured;
}

void launch_graph(void* executable, void* stream) {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable), as_stream(stream)), "replay a graph",
        "cudaGraphLaunch");
}

void destroy_graph(void* executable) noexcept {
  forget(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable)));
}

void* allocate(std::size_t bytes) {
  void* data = nullptr;
  const std::string asked = "allocate " + std::to_string(bytes) + " B on a GPU";
  return out_of_room(cudaMalloc(&data, bytes), asked, "cudaMalloc") ? nullptr : data;
}

void* allocate_in_capture(std::size_t bytes) {
  const RelaxedCapture relaxed;
  return allocate(bytes);
}

void release(void* data) noexcept { forget(cudaFree(data)); }

void* allocate_pinned(std::size_t bytes) {
  void* data = nullptr;
  const std::string asked = "allocate " + std::to_string(bytes) + " B of pinned host memory";
  return out_of_room(cudaMallocHost(&data, bytes), asked, "cudaMallocHost") ? nullptr : data;
}

void release_pinned(void* data) noexcept { forget(cudaFreeHost(data)); }

void memory_use(std::uint64_t& free, std::uint64_t& total) {
  std::size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for a GPU's free memory", "cudaMemGetInfo");
  free = free_bytes;
  total = total_bytes;
}

Pointer pointer(const void* data) {
  if (!cuda_in_use()) return {};
  cudaPointerAttributes attributes{};
  if (const cudaError_t error = cudaPointerGetAttributes(&attributes, data); error != cudaSuccess) {
    // Without a driver or a GPU all memory is host memory.
    if (error != cudaErrorInvalidValue && error != cudaErrorInsufficientDriver && error != cudaErrorNoDevice) {
      check(error, "ask whose memory a pointer is in", "cudaPointerGetAttributes");
    }
    forget(error);
    return {};
  }
  switch (attributes.type) {
    case cudaMemoryTypeDevice:
      return {.place = {Kind::cuda, attributes.device}, .pinned = false, .managed = false};
    case cudaMemoryTypeManaged:
      return {.place = {Kind::cuda, attributes.device}, .pinned = false, .managed = true};
    case cudaMemoryTypeHost:
      return {.place = {}, .pinned = true, .managed = false};
    default:
      return {};
  }
}

void copy(void* to, const void* from, std::size_t bytes, void* stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, as_stream(stream)),
        "copy " + std::to_string(bytes) + " B from or to a GPU", "cudaMemcpyAsync");
}

void fill_bytes(void* at, int value, std::size_t bytes, void* stream) {
  check(cudaMemsetAsync(at, value, bytes, as_stream(stream)), "fill " + std::to_string(bytes) + " B of a GPU",
        "cudaMemsetAsync");
}

static_assert(sizeof(SharedHandle) == sizeof(cudaIpcMemHandle_t));

SharedHandle share(void* data) {
  cudaIpcMemHandle_t made;
  check(cudaIpcGetMemHandle(&made, data), "share memory of a GPU with other processes", "cudaIpcGetMemHandle");
  SharedHandle handle;
  std::memcpy(handle.bytes, &made, sizeof made);
  return handle;
}

void* open_shared(const SharedHandle& handle) {
  cudaIpcMemHandle_t given;
  std::memcpy(&given, handle.bytes, sizeof given);
  void* data = nullptr;
  const cudaError_t error = cudaIpcOpenMemHandle(&data, given, cudaIpcMemLazyEnablePeerAccess);
  if (error == cudaErrorPeerAccessUnsupported || error == cudaErrorNotSupported) {
    forget(error);
    throw Unsupported("the GPUs of two ranks have no way to each other's memory (" + text_of(error) +
                      "): ask for the backend nccl, which goes through the host then");
  }
  check(error, "open memory of another process's GPU", "cudaIpcOpenMemHandle");
  return data;
}

void close_shared(void* data) noexcept { forget(cudaIpcCloseMemHandle(data)); }

void map_host(void* data, std::size_t bytes) {
  check(cudaHostRegister(data, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable),
        "map " + std::to_string(bytes) + " B of host memory for a GPU", "cudaHostRegister");
  void* there = nullptr;
  check(cudaHostGetDevicePointer(&there, data, 0), "find mapped host memory", "cudaHostGetDevicePointer");
  if (there == data) return;
  unmap_host(data);
  throw Unsupported("the GPU sees host memory at addresses of its own");
}

void unmap_host(void* data) noexcept { forget(cudaHostUnregister(data)); }

}  // namespace runtime
}  // namespace syslab::device
