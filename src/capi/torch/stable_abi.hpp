// The part of torch's stable C interface that the operators use, declared by us and looked up in the torch that the
// process has loaded. So libsyslab is built and loads without torch, and one file serves every version from 2.10 on:
// torch promises that these functions stay as they are (torch/csrc/inductor/aoti_torch/c/shim.h,
// torch/csrc/stable/c/shim.h). tests/e2e/torch_headers.py holds the declarations against the headers of the torch that
// it finds.
//
// Torch's own headers are not kept here: they would serve to declare these functions, and the C++ that they add is
// linked with libtorch_cpu by name, which a machine without torch does not have.
//
// Functions that return std::int32_t return 0, or another number after a failure, which torch writes to stderr.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syslab::capi::torch {

struct TensorOpaque;
struct LibraryOpaque;
struct StringOpaque;
using TensorHandle = TensorOpaque*;
using LibraryHandle = LibraryOpaque*;
using StringHandle = StringOpaque*;
// A tensor's or a text's handle, an integer or a bool, from its lowest byte on.
using Slot = std::uint64_t;
// Takes `inputs` slots and leaves `outputs` in their place. Owns the handles it is given, gives up those it leaves.
using Kernel = void (*)(Slot* slots, std::uint64_t inputs, std::uint64_t outputs);

// X(name, result, (parameters)), from libtorch_cpu.so.
#define SYSLAB_TORCH_FUNCTIONS(X)                                                                                      \
  X(aoti_torch_device_type_cpu, std::int32_t, ())                                                                      \
  X(aoti_torch_device_type_cuda, std::int32_t, ())                                                                     \
  X(aoti_torch_dtype_float32, std::int32_t, ())                                                                        \
  X(aoti_torch_dtype_float16, std::int32_t, ())                                                                        \
  X(aoti_torch_dtype_bfloat16, std::int32_t, ())                                                                       \
  X(aoti_torch_dtype_uint8, std::int32_t, ())                                                                          \
  X(aoti_torch_get_dim, std::int32_t, (TensorHandle, std::int64_t*))                                                   \
  X(aoti_torch_get_sizes, std::int32_t, (TensorHandle, std::int64_t**))                                                \
  X(aoti_torch_get_strides, std::int32_t, (TensorHandle, std::int64_t**))                                              \
  X(aoti_torch_get_dtype, std::int32_t, (TensorHandle, std::int32_t*))                                                 \
  X(aoti_torch_get_device_type, std::int32_t, (TensorHandle, std::int32_t*))                                           \
  X(aoti_torch_get_device_index, std::int32_t, (TensorHandle, std::int32_t*))                                          \
  X(aoti_torch_get_data_ptr, std::int32_t, (TensorHandle, void**))                                                     \
  X(aoti_torch_empty_strided, std::int32_t,                                                                            \
    (std::int64_t, const std::int64_t*, const std::int64_t*, std::int32_t, std::int32_t, std::int32_t, TensorHandle*)) \
  X(aoti_torch_copy_, std::int32_t, (TensorHandle, TensorHandle, std::int32_t))                                        \
  X(aoti_torch_delete_tensor_object, std::int32_t, (TensorHandle))                                                     \
  X(torch_string_c_str, std::int32_t, (StringHandle, const char**))                                                    \
  X(torch_delete_string, std::int32_t, (StringHandle))                                                                 \
  X(aoti_torch_library_init_fragment, std::int32_t, (const char*, const char*, std::uint32_t, LibraryHandle*))         \
  X(aoti_torch_library_init_impl, std::int32_t,                                                                        \
    (const char*, const char*, const char*, std::uint32_t, LibraryHandle*))                                            \
  X(aoti_torch_library_def, std::int32_t, (LibraryHandle, const char*))                                                \
  X(torch_library_impl, std::int32_t, (LibraryHandle, const char*, Kernel, std::uint64_t))

struct Functions {
#define SYSLAB_TORCH_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  SYSLAB_TORCH_FUNCTIONS(SYSLAB_TORCH_MEMBER)
#undef SYSLAB_TORCH_MEMBER
  // Of torch 2.13 and newer, else null.
  std::int32_t (*torch_delete_stable_ivalue)(Slot* slot) = nullptr;
  // From libtorch_cuda.so; null where torch was built without CUDA.
  std::int32_t (*aoti_torch_get_current_cuda_stream)(std::int32_t device_index, void** stream) = nullptr;

  // What does not change while the process lives.
  std::int32_t cpu = 0, cuda = 0, float32 = 0, float16 = 0, bfloat16 = 0, uint8 = 0;
};

// The version whose rules the slots above follow, as torch counts them.
inline constexpr std::uint64_t kSlotRules = std::uint64_t{2} << 56 | std::uint64_t{10} << 48;

// Found at the first call. Error(device) if the process has no torch, or one that lacks a function: with its name.
const Functions& functions();

}  // namespace syslab::capi::torch
