// Replaces runtime.cu in builds without the CUDA toolkit.
#include "device/cuda/runtime.hpp"

#include "device/cuda/cuda_error.hpp"
#include "device/cuda/launch.hpp"

namespace syslab::device {

void check_launch(std::string_view) {}

namespace runtime {

bool present() { return false; }
int device_count() noexcept { return 0; }
int current() { throw_no_cuda("ask for the current GPU"); }
void make_current(int) { throw_no_cuda("choose a GPU"); }
DeviceProperties properties(int) { throw_no_cuda("ask what a GPU is"); }
void synchronize_device() { throw_no_cuda("wait for a GPU"); }

void* create_stream(bool) { throw_no_cuda("create a CUDA stream"); }
void destroy_stream(void*) noexcept {}
void synchronize_stream(void*) { throw_no_cuda("wait for a CUDA stream"); }
bool stream_done(void*) { throw_no_cuda("ask for the state of a CUDA stream"); }
int stream_device(void*) { throw_no_cuda("ask which GPU a CUDA stream is of"); }
bool stream_capturing(void*) { throw_no_cuda("ask for the state of a CUDA stream"); }

void* create_event(bool) { throw_no_cuda("create a CUDA event"); }
void destroy_event(void*) noexcept {}
void record_event(void*, void*) { throw_no_cuda("record a CUDA event"); }
void stream_wait(void*, void*) { throw_no_cuda("wait for a CUDA event"); }
void synchronize_event(void*) { throw_no_cuda("wait for a CUDA event"); }
bool event_done(void*) { throw_no_cuda("ask for the state of a CUDA event"); }
double milliseconds_between(void*, void*) { throw_no_cuda("read a CUDA event's time"); }

std::string begin_capture(void*) { throw_no_cuda("capture a CUDA graph"); }
Captured end_capture(void*) { throw_no_cuda("capture a CUDA graph"); }
void launch_graph(void*, void*) { throw_no_cuda("replay a CUDA graph"); }
void destroy_graph(void*) noexcept {}

void* allocate(std::size_t) { throw_no_cuda("allocate memory of a GPU"); }
void* allocate_in_capture(std::size_t) { throw_no_cuda("allocate memory of a GPU"); }
void release(void*) noexcept {}
void* allocate_pinned(std::size_t) { throw_no_cuda("allocate pinned memory"); }
void release_pinned(void*) noexcept {}
void memory_use(std::uint64_t&, std::uint64_t&) { throw_no_cuda("ask for a GPU's free memory"); }
Pointer pointer(const void*) { return {}; }  // without CUDA all memory is host memory
void copy(void*, const void*, std::size_t, void*) { throw_no_cuda("copy memory of a GPU"); }
void fill_bytes(void*, int, std::size_t, void*) { throw_no_cuda("fill memory of a GPU"); }

SharedHandle share(void*) { throw_no_cuda("share memory of a GPU"); }
void* open_shared(const SharedHandle&) { throw_no_cuda("open memory of another process's GPU"); }
void close_shared(void*) noexcept {}
void write_word(void*, void*, std::uint32_t) { throw_no_cuda("write a word in the order of a CUDA stream"); }
void await_word(void*, const void*, std::uint32_t) { throw_no_cuda("let a CUDA stream wait for a word"); }
std::size_t shared_bytes(const void*) { throw_no_cuda("ask for the size of another process's memory"); }
FencedMemory::Mapped map_fenced(int, int, std::size_t) { throw_no_cuda("map memory of a GPU"); }
void unmap_fenced(const FencedMemory::Mapped&, std::size_t) noexcept {}
void forget_persisting_lines() { throw_no_cuda("change a GPU's L2"); }
void map_host(void*, std::size_t) { throw_no_cuda("map host memory for a GPU"); }
void unmap_host(void*) noexcept {}
void* create_context(int) { throw_no_cuda("create a context"); }
void destroy_context(void*) noexcept {}
void* enter_context(void*) { throw_no_cuda("enter a context"); }
void leave_context(void*) noexcept {}
void run_nothing(void*) { throw_no_cuda("run an empty kernel"); }
void run_touch(void*, std::size_t, void*) { throw_no_cuda("run a kernel"); }

}  // namespace runtime
}  // namespace syslab::device
