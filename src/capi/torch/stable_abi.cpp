#include "capi/torch/stable_abi.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace syslab::capi::torch {
namespace {

// What Python has loaded, which is not visible to all; nothing is loaded here.
void* loaded(const char* library) { return dlopen(library, RTLD_LAZY | RTLD_NOLOAD); }

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw Error(ErrorKind::device,
                fmt::format("this torch has no {}: operators need the stable interface of torch 2.10 or newer", name));
  }
}

Functions find_all() {
  void* const library = loaded("libtorch_cpu.so");
  if (library == nullptr) {
    throw Error(ErrorKind::device,
                "no libtorch_cpu.so is loaded in this process: operators need torch 2.10 or newer, imported before");
  }
  Functions found;
#define SYSLAB_TORCH_FIND(name, result, parameters) find(library, #name, found.name);
  SYSLAB_TORCH_FUNCTIONS(SYSLAB_TORCH_FIND)
#undef SYSLAB_TORCH_FIND
  found.torch_delete_stable_ivalue =
      reinterpret_cast<decltype(found.torch_delete_stable_ivalue)>(dlsym(library, "torch_delete_stable_ivalue"));
  if (void* const of_cuda = loaded("libtorch_cuda.so"); of_cuda != nullptr) {
    find(of_cuda, "aoti_torch_get_current_cuda_stream", found.aoti_torch_get_current_cuda_stream);
  }
  found.cpu = found.aoti_torch_device_type_cpu();
  found.cuda = found.aoti_torch_device_type_cuda();
  found.float32 = found.aoti_torch_dtype_float32();
  found.float16 = found.aoti_torch_dtype_float16();
  found.bfloat16 = found.aoti_torch_dtype_bfloat16();
  found.uint8 = found.aoti_torch_dtype_uint8();
  return found;
}

}  // namespace

const Functions& functions() {
  static const Functions found = find_all();
  return found;
}

}  // namespace syslab::capi::torch
