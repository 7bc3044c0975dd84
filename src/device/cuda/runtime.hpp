// The part of CUDA's runtime that this room uses, with handles as void*. Implemented by runtime.cu and
// driver.cu if the build has CUDA, otherwise by runtime_none.cpp, where every function that needs CUDA throws
// Error(device). Private to this room: streams, events, graphs, buffers and copies have their own headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/device.hpp"
#include "device/fenced_memory.hpp"
#include "device/properties.hpp"

namespace syslab::device::runtime {

bool present();               // this build has CUDA
int device_count() noexcept;  // that this process can use; 0 without driver or GPU
int current();                // GPU that new streams, events and memory come from
void make_current(int index);
DeviceProperties properties(int index);
void synchronize_device();  // the current one, all streams

// On the current GPU; does not wait for the default stream. `urgent`: its pending work is scheduled before other
// streams'.
void* create_stream(bool urgent = false);
void destroy_stream(void* stream) noexcept;
void synchronize_stream(void* stream);
bool stream_done(void* stream);
int stream_device(void* stream);
bool stream_capturing(void* stream);

void* create_event(bool timing);
void destroy_event(void* event) noexcept;
void record_event(void* event, void* stream);
void stream_wait(void* stream, void* event);
void synchronize_event(void* event);
bool event_done(void* event);  // also while a stream of this thread is captured
double milliseconds_between(void* begin, void* end);

struct Captured {
  void* executable = nullptr;
  std::size_t nodes = 0;
  std::string why;      // why there is no executable graph
  bool broken = false;  // the work did something that cannot be captured (rather than queueing nothing)
};
std::string begin_capture(void* stream);  // why capturing failed; empty: capturing
Captured end_capture(void* stream);
void launch_graph(void* executable, void* stream);
void destroy_graph(void* executable) noexcept;

void* allocate(std::size_t bytes);             // on the current GPU; null if there is no room
void* allocate_in_capture(std::size_t bytes);  // the same, also while a stream of this thread is captured
void release(void* data) noexcept;
void* allocate_pinned(std::size_t bytes);
void release_pinned(void* data) noexcept;
void memory_use(std::uint64_t& free, std::uint64_t& total);
struct Pointer {
  Place place;
  bool pinned = false, managed = false;
};
Pointer pointer(const void* data);
void copy(void* to, const void* from, std::size_t bytes, void* stream);
void fill_bytes(void* at, int value, std::size_t bytes, void* stream);

// Shares memory of allocate() with other processes of this host, and maps theirs for the current GPU.
struct SharedHandle {
  unsigned char bytes[64] = {};
};
SharedHandle share(void* data);
void* open_shared(const SharedHandle& handle);  // Unsupported without peer access between the GPUs
void close_shared(void* data) noexcept;
std::size_t shared_bytes(const void* data);  // of the allocation that open_shared() has mapped, from its beginning
// By the stream's front end, without a kernel: write a word after all queued work; wait until a word of the stream's
// own GPU has reached `value`, modulo 2^32.
void write_word(void* stream, void* at, std::uint32_t value);
void await_word(void* stream, const void* at, std::uint32_t value);
// Host memory that is there becomes pinned, and reached by its address from all contexts.
void map_host(void* data, std::size_t bytes);
void unmap_host(void* data) noexcept;

// Pieces of the GPU's memory with addresses behind each at which nothing is mapped.
FencedMemory::Mapped map_fenced(int gpu, int count, std::size_t bytes);
void unmap_fenced(const FencedMemory::Mapped& gone, std::size_t reserved) noexcept;
void forget_persisting_lines();  // of the current GPU's L2

// Contexts besides the runtime's own. What is created between entering and leaving one belongs to it.
void* create_context(int gpu);  // is not entered
void destroy_context(void* context) noexcept;
void* enter_context(void* context);  // the one before, for leave_context()
void leave_context(void* before) noexcept;
void run_nothing(void* stream);                                 // an empty kernel
void run_touch(void* memory, std::size_t bytes, void* stream);  // a kernel that reads and writes all of it

}  // namespace syslab::device::runtime
