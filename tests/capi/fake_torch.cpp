// libtorch_cpu.so for tests: the functions of torch's stable interface that the operators use, over memory of the host.
// It counts what is owned, so that a test sees a handle that leaks or is given back twice.
#include "tests/capi/fake_torch.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace {

struct Tensor {
  std::vector<std::int64_t> sizes, strides;
  std::vector<std::byte> bytes;
  std::int32_t dtype = 0;
};

struct State {
  std::map<std::string, syslab::fake_torch::Kernel> kernels;
  std::vector<std::string> schemas;
  int live = 0, until_refusal = -1;
};

State& state() {
  static State one;
  return one;
}

std::int64_t size_of(std::int32_t dtype) {
  return dtype == syslab::fake_torch::kFloat64 ? 8 : dtype == syslab::fake_torch::kFloat32 ? 4 : dtype == 0 ? 1 : 2;
}

}  // namespace

extern "C" {

std::int32_t aoti_torch_device_type_cpu() { return 0; }
std::int32_t aoti_torch_device_type_cuda() { return 1; }
std::int32_t aoti_torch_dtype_uint8() { return 0; }
std::int32_t aoti_torch_dtype_float16() { return syslab::fake_torch::kFloat16; }
std::int32_t aoti_torch_dtype_float32() { return syslab::fake_torch::kFloat32; }
std::int32_t aoti_torch_dtype_bfloat16() { return syslab::fake_torch::kBfloat16; }

std::int32_t aoti_torch_get_dim(Tensor* tensor, std::int64_t* rank) {
  *rank = static_cast<std::int64_t>(tensor->sizes.size());
  return 0;
}
std::int32_t aoti_torch_get_sizes(Tensor* tensor, std::int64_t** sizes) {
  *sizes = tensor->sizes.data();
  return 0;
}
std::int32_t aoti_torch_get_strides(Tensor* tensor, std::int64_t** strides) {
  *strides = tensor->strides.data();
  return 0;
}
std::int32_t aoti_torch_get_dtype(Tensor* tensor, std::int32_t* dtype) {
  *dtype = tensor->dtype;
  return 0;
}
std::int32_t aoti_torch_get_device_type(Tensor*, std::int32_t* type) {
  *type = 0;
  return 0;
}
std::int32_t aoti_torch_get_device_index(Tensor*, std::int32_t* index) {
  *index = -1;
  return 0;
}
std::int32_t aoti_torch_get_data_ptr(Tensor* tensor, void** data) {
  *data = tensor->bytes.data();
  return 0;
}

std::int32_t aoti_torch_empty_strided(std::int64_t rank, const std::int64_t* sizes, const std::int64_t* strides,
                                      std::int32_t dtype, std::int32_t, std::int32_t, Tensor** made) {
  if (state().until_refusal >= 0 && state().until_refusal-- == 0) return 1;
  auto* tensor = new Tensor{{sizes, sizes + rank}, {strides, strides + rank}, {}, dtype};
  std::int64_t elements = 1;
  for (std::int64_t dim = 0; dim < rank; ++dim) elements += (sizes[dim] - 1) * strides[dim];
  tensor->bytes.assign(static_cast<std::size_t>(elements * size_of(dtype)), std::byte{0xff});  // NaN
  ++state().live;
  *made = tensor;
  return 0;
}

std::int32_t aoti_torch_copy_(Tensor* to, Tensor* from, std::int32_t) {
  if (to->sizes != from->sizes || to->dtype != from->dtype) return 1;
  const std::int64_t bytes = size_of(to->dtype);
  std::vector<std::int64_t> index(to->sizes.size());
  while (true) {
    std::int64_t to_at = 0, from_at = 0;
    for (std::size_t dim = 0; dim < index.size(); ++dim) {
      to_at += index[dim] * to->strides[dim], from_at += index[dim] * from->strides[dim];
    }
    std::copy_n(&from->bytes[static_cast<std::size_t>(from_at * bytes)], bytes,
                &to->bytes[static_cast<std::size_t>(to_at * bytes)]);
    std::size_t dim = index.size();
    while (dim-- > 0 && ++index[dim] == to->sizes[dim]) index[dim] = 0;
    if (dim == static_cast<std::size_t>(-1)) return 0;
  }
}

std::int32_t aoti_torch_delete_tensor_object(Tensor* tensor) {
  delete tensor;
  --state().live;
  return 0;
}

std::int32_t torch_string_c_str(std::string* text, const char** data) {
  *data = text->c_str();
  return 0;
}
std::int32_t torch_delete_string(std::string* text) {
  delete text;
  --state().live;
  return 0;
}

std::int32_t aoti_torch_library_init_fragment(const char* name, const char*, std::uint32_t, std::string** library) {
  *library = new std::string(std::string(name) + "::");  // lives as long as the process, as the registrations do
  return 0;
}
std::int32_t aoti_torch_library_init_impl(const char* name, const char* device, const char*, std::uint32_t,
                                          std::string** library) {
  *library = new std::string((std::string(name) == "syslab" ? "" : std::string(name) + " ") + device);
  return 0;
}
std::int32_t aoti_torch_library_def(std::string* library, const char* schema) {
  state().schemas.push_back(*library + schema);
  return 0;
}
// Refuses, as torch does, a kernel of what is not defined, twice the same, and rules that nobody knows.
std::int32_t torch_library_impl(std::string* library, const char* name, syslab::fake_torch::Kernel kernel,
                                std::uint64_t rules) {
  const std::string begins = "syslab::" + std::string(name) + "(";
  const bool defined = library->starts_with("aten ")
                           ? std::string(name).starts_with("_scaled_dot_product_flash_attention_for_cpu")
                           : std::any_of(state().schemas.begin(), state().schemas.end(),
                                         [&](const std::string& schema) { return schema.starts_with(begins); });
  return defined && rules >> 56 == 2 && state().kernels.emplace(*library + " " + name, kernel).second ? 0 : 1;
}

syslab::fake_torch::Kernel fake_torch_kernel(const char* device, const char* operation) {
  const auto found = state().kernels.find(std::string(device) + " " + operation);
  return found == state().kernels.end() ? nullptr : found->second;
}
syslab::fake_torch::Slot fake_torch_text(const char* text) {
  ++state().live;
  return reinterpret_cast<syslab::fake_torch::Slot>(new std::string(text));
}
syslab::fake_torch::Slot fake_torch_optional(Tensor* tensor) {
  if (tensor == nullptr) {
    tensor = new Tensor;
    ++state().live;
  }
  ++state().live;
  return reinterpret_cast<syslab::fake_torch::Slot>(
      new syslab::fake_torch::Slot(reinterpret_cast<syslab::fake_torch::Slot>(tensor)));
}
std::int32_t torch_delete_stable_ivalue(syslab::fake_torch::Slot* slot) {
  --state().live;
  delete slot;
  return 0;
}
int fake_torch_live() { return state().live; }
void fake_torch_refuse(int allocation) { state().until_refusal = allocation; }

}  // extern "C"
