#include "capi/torch/operators.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "capi/attention_call.hpp"
#include "capi/torch/stable_abi.hpp"
#include "device/cuda/launch.hpp"

namespace syslab::capi::torch {
namespace {

void demand(std::int32_t status, const char* what) {
  if (status != 0) throw Error(ErrorKind::internal, fmt::format("torch could not {}; stderr says why", what));
}

// A tensor of torch with an owner.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorHandle handle) : handle_(handle) {}
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_ != nullptr) functions().aoti_torch_delete_tensor_object(handle_);
  }

  static Tensor of_slot(Slot slot) { return Tensor(reinterpret_cast<TensorHandle>(slot)); }
  Slot give_up() { return reinterpret_cast<Slot>(std::exchange(handle_, nullptr)); }
  TensorHandle handle() const { return handle_; }

  std::span<const std::int64_t> sizes() const {
    std::int64_t rank = 0, *sizes = nullptr;
    demand(functions().aoti_torch_get_dim(handle_, &rank), "tell a tensor's rank");
    demand(functions().aoti_torch_get_sizes(handle_, &sizes), "tell a tensor's sizes");
    return {sizes, static_cast<std::size_t>(rank)};
  }
  const std::int64_t* strides() const {
    std::int64_t* strides = nullptr;
    demand(functions().aoti_torch_get_strides(handle_, &strides), "tell a tensor's strides");
    return strides;
  }
  std::int32_t dtype() const {
    std::int32_t dtype = 0;
    demand(functions().aoti_torch_get_dtype(handle_, &dtype), "tell a tensor's dtype");
    return dtype;
  }
  void* data() const {
    void* data = nullptr;
    demand(functions().aoti_torch_get_data_ptr(handle_, &data), "tell where a tensor lies");
    return data;
  }

 private:
  TensorHandle handle_ = nullptr;
};

// An optional of torch with an owner: the address of a slot; 0 if it is none.
class Optional {
 public:
  explicit Optional(Slot slot) : held_(reinterpret_cast<Slot*>(slot)) {}
  Optional(const Optional&) = delete;
  Optional& operator=(const Optional&) = delete;
  ~Optional() {
    if (held_ == nullptr) return;
    if (functions().torch_delete_stable_ivalue != nullptr) {
      functions().torch_delete_stable_ivalue(held_);
    } else {
      delete held_;  // as the headers of torch do until they have that function
    }
  }

  bool holds() const { return held_ != nullptr; }
  Tensor tensor() const { return holds() ? Tensor::of_slot(*held_) : Tensor(); }

 private:
  Slot* held_;
};

// A text of torch with an owner.
class Text {
 public:
  explicit Text(Slot slot) : handle_(reinterpret_cast<StringHandle>(slot)) {}
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ~Text() { functions().torch_delete_string(handle_); }

  const char* c_str() const {
    const char* text = nullptr;
    demand(functions().torch_string_c_str(handle_, &text), "tell a text");
    return text;
  }

 private:
  StringHandle handle_;
};

struct Site {
  std::int32_t type = 0, index = 0;  // as torch counts devices
  bool operator==(const Site&) const = default;
};

Site site_of(const Tensor& tensor) {
  Site site;
  demand(functions().aoti_torch_get_device_type(tensor.handle(), &site.type), "tell a tensor's device");
  if (site.type == functions().cpu) return site;
  demand(functions().aoti_torch_get_device_index(tensor.handle(), &site.index), "tell a tensor's device");
  return site;
}

Tensor make(std::span<const std::int64_t> sizes, std::int32_t dtype, Site site) {
  std::array<std::int64_t, kMaxRank> strides{};
  std::int64_t stride = 1;
  for (std::size_t dim = sizes.size(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= std::max<std::int64_t>(sizes[dim], 1);
  }
  TensorHandle made = nullptr;
  demand(functions().aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(),
                                              dtype, site.type, site.index, &made),
         "make a tensor");
  return Tensor(made);
}

// The tensors of a call: which device they share, and views of them.
class Call {
 public:
  explicit Call(const Tensor& q) : site_(site_of(q)) {
    if (site_.type != functions().cpu) place_ = {device::Kind::cuda, site_.index};
    if (place_.kind == device::Kind::cpu) return;
    if (!device::built_with_cuda()) {
      throw Error(ErrorKind::device,
                  fmt::format("the tensors lie on {} and this libsyslab was built without CUDA; build "
                              "it with -Dcuda=enabled, or pass copies in host memory",
                              to_string(place_)));
    }
    if (functions().aoti_torch_get_current_cuda_stream == nullptr) {
      throw Error(ErrorKind::device, "the tensors lie on a GPU and torch has no libtorch_cuda.so");
    }
    stream_.kind = device::Kind::cuda;
    demand(functions().aoti_torch_get_current_cuda_stream(site_.index, &stream_.handle), "tell its current stream");
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { forget_accounts(place_); }

  device::Place place() const { return place_; }
  device::Stream stream() const { return stream_; }

  // As (B, H, S, D); (B, S, D) has one head. `tensor` is replaced by a copy if the elements of its rows do not lie side
  // by side.
  TensorView matrix(std::string_view name, Tensor& tensor) const {
    const std::span<const std::int64_t> sizes = tensor.sizes();
    if (sizes.size() != 3 && sizes.size() != 4) {
      throw Error(ErrorKind::usage,
                  fmt::format("{} has {} dimensions; it must be (B, S, D) or (B, H, S, D)", name, sizes.size()));
    }
    if (tensor.strides()[sizes.size() - 1] != 1 && sizes.back() > 1) {
      Tensor copy = make(sizes, tensor.dtype(), site_of(tensor));
      demand(functions().aoti_torch_copy_(copy.handle(), tensor.handle(), 1), "copy a tensor");
      tensor = std::move(copy);
    }
    return view(name, tensor, 4);
  }
  TensorView rows(std::string_view name, const Tensor& tensor) const { return view(name, tensor, 3); }

  Tensor make_like(const Tensor& tensor) const { return make(tensor.sizes(), tensor.dtype(), site_); }
  // A row of `q` each.
  Tensor make_lse(const Tensor& q) const {
    const std::span<const std::int64_t> sizes = q.sizes();
    return make(sizes.first(sizes.size() - 1), functions().float32, site_);
  }
  // In `memory`, which keeps it.
  ops::Workspace make_workspace(std::size_t bytes, Tensor& memory) const {
    if (bytes == 0) return {};
    const std::array<std::int64_t, 1> sizes{static_cast<std::int64_t>(bytes)};
    memory = make(sizes, functions().uint8, site_);
    return {memory.data(), bytes};
  }

 private:
  DType dtype_of(std::string_view name, const Tensor& tensor) const {
    const std::int32_t dtype = tensor.dtype();
    if (dtype == functions().float32) return DType::f32;
    if (dtype == functions().float16) return DType::f16;
    if (dtype == functions().bfloat16) return DType::bf16;
    throw Error(ErrorKind::usage, fmt::format("{} is not of float32, float16 or bfloat16", name));
  }

  TensorView view(std::string_view name, const Tensor& tensor, int full_rank) const {
    if (site_of(tensor) != site_) {
      throw Error(ErrorKind::usage,
                  fmt::format("{} lies elsewhere than {}, where q lies; all tensors of a call must be "
                              "on one device",
                              name, to_string(place_)));
    }
    const std::span<const std::int64_t> given = tensor.sizes();
    if (std::cmp_greater(given.size(), full_rank)) {
      throw Error(ErrorKind::usage,
                  fmt::format("{} has {} dimensions; at most {} are taken", name, given.size(), full_rank));
    }
    const std::int64_t* given_strides = tensor.strides();
    std::array<std::int64_t, kMaxRank> sizes{};
    Strides strides{};
    std::size_t to = 0;
    for (std::size_t dim = 0; dim < given.size(); ++dim) {
      if (dim == 1 && std::cmp_less(given.size(), full_rank)) sizes[to++] = 1;  // the head; its stride is never used
      sizes[to] = given[dim];
      strides[to++] = given[dim] == 1 && dim + 1 == given.size() && full_rank == 4 ? 1 : given_strides[dim];
    }
    return TensorView(tensor.data(), dtype_of(name, tensor), Shape(std::span(sizes.data(), to)), strides);
  }

  Site site_;
  device::Place place_;
  device::Stream stream_;
};

// `name`: "" leaves the choice to the library.
syslab_attention_options options_of(Slot is_causal, const char* name) {
  syslab_attention_options options{};
  options.causal = (is_causal & 0xFF) != 0 ? 1 : 0;
  options.implementation = *name == '\0' ? nullptr : name;
  return options;
}

void require_same_rank(const Tensor& q, std::initializer_list<std::pair<const char*, const Tensor*>> others) {
  for (const auto& [name, tensor] : others) {
    if (tensor->sizes().size() == q.sizes().size()) continue;
    throw Error(ErrorKind::usage, fmt::format("{} has {} dimensions where q has {}; they must be alike", name,
                                              tensor->sizes().size(), q.sizes().size()));
  }
}

// The errors that Python knows: ValueError, MemoryError and RuntimeError.
template <typename Body>
void as_python_expects(const char* name, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string message = fmt::format("{}: {}", name, error.what());
    if (error.kind() == ErrorKind::usage || error.kind() == ErrorKind::config) throw std::invalid_argument(message);
    throw std::runtime_error(message);
  }
}

struct Forward {
  Tensor out, lse;
};

Forward forward_of(Tensor& q, Tensor& k, Tensor& v, const syslab_attention_options& options) {
  const Call call(q);
  require_same_rank(q, {{"k", &k}, {"v", &v}});
  const ConstTensorView q_view = call.matrix("q", q), k_view = call.matrix("k", k), v_view = call.matrix("v", v);
  const attention::Problem problem = problem_of(q_view, k_view, options);
  Forward made{call.make_like(q), call.make_lse(q)};
  const attention::ForwardArgs args{q_view, k_view, v_view, call.matrix("out", made.out), call.rows("lse", made.lse)};
  attention::validate(problem, args);
  const device::CurrentDevice current(call.place());
  const attention::Rung& rung =
      choose(problem, Pass::forward, options, call.stream(), attention::walkable({args.q, args.k, args.v, args.out}));
  Tensor memory;
  rung.forward(problem, args, call.make_workspace(rung.workspace_bytes(problem, Pass::forward), memory), call.stream());
  return made;
}

struct Gradients {
  Tensor dq, dk, dv;
};

Gradients backward_of(Tensor& dout, Tensor& q, Tensor& k, Tensor& v, Tensor& out, Tensor& lse,
                      const syslab_attention_options& options) {
  const Call call(q);
  require_same_rank(q, {{"k", &k}, {"v", &v}, {"out", &out}, {"dout", &dout}});
  const ConstTensorView q_view = call.matrix("q", q), k_view = call.matrix("k", k), v_view = call.matrix("v", v);
  const attention::Problem problem = problem_of(q_view, k_view, options);
  Gradients made{call.make_like(q), call.make_like(k), call.make_like(v)};
  const attention::BackwardArgs args{q_view,
                                     k_view,
                                     v_view,
                                     call.matrix("out", out),
                                     call.rows("lse", lse),
                                     call.matrix("dout", dout),
                                     call.matrix("dq", made.dq),
                                     call.matrix("dk", made.dk),
                                     call.matrix("dv", made.dv)};
  attention::validate(problem, args);
  const device::CurrentDevice current(call.place());
  const attention::Rung& rung =
      choose(problem, Pass::backward, options, call.stream(),
             attention::walkable({args.q, args.k, args.v, args.out, args.dout, args.dq, args.dk, args.dv}));
  Tensor memory;
  rung.backward(problem, args, call.make_workspace(rung.workspace_bytes(problem, Pass::backward), memory),
                call.stream());
  return made;
}

void leave(Slot* slots, Forward made) {
  slots[0] = made.out.give_up();
  slots[1] = made.lse.give_up();
}

void leave(Slot* slots, Gradients made) {
  slots[0] = made.dq.give_up();
  slots[1] = made.dk.give_up();
  slots[2] = made.dv.give_up();
}

void forward(Slot* slots, std::uint64_t, std::uint64_t) {
  Tensor q = Tensor::of_slot(slots[0]), k = Tensor::of_slot(slots[1]), v = Tensor::of_slot(slots[2]);
  const Text implementation(slots[4]);
  as_python_expects("syslab::attention_forward",
                    [&] { leave(slots, forward_of(q, k, v, options_of(slots[3], implementation.c_str()))); });
}

void backward(Slot* slots, std::uint64_t, std::uint64_t) {
  Tensor dout = Tensor::of_slot(slots[0]), q = Tensor::of_slot(slots[1]), k = Tensor::of_slot(slots[2]);
  Tensor v = Tensor::of_slot(slots[3]), out = Tensor::of_slot(slots[4]), lse = Tensor::of_slot(slots[5]);
  const Text implementation(slots[7]);
  as_python_expects("syslab::attention_backward", [&] {
    leave(slots, backward_of(dout, q, k, v, out, lse, options_of(slots[6], implementation.c_str())));
  });
}

// The same under a name for which torch has a node of autograd in C++ (kNode below). On a GPU nobody but us calls it,
// and of its further arguments only these values are passed. A dropout of -0.0 is none, either.
syslab_attention_options options_of_node(Slot dropout, Slot is_causal, const Optional& scale) {
  if (std::bit_cast<double>(dropout) != 0 || scale.holds()) {
    throw Error(ErrorKind::usage, "attention takes no dropout and no scale from torch");
  }
  return options_of(is_causal, "");
}

void forward_of_node(Slot* slots, std::uint64_t, std::uint64_t) {
  Tensor q = Tensor::of_slot(slots[0]), k = Tensor::of_slot(slots[1]), v = Tensor::of_slot(slots[2]);
  const Tensor mask = Optional(slots[5]).tensor();
  const Optional scale(slots[6]);
  as_python_expects("syslab::attention_forward", [&] {
    if (mask.handle() != nullptr) throw Error(ErrorKind::usage, "attention takes no mask of torch's");
    leave(slots, forward_of(q, k, v, options_of_node(slots[3], slots[4], scale)));
  });
}

void backward_of_node(Slot* slots, std::uint64_t, std::uint64_t) {
  Tensor dout = Tensor::of_slot(slots[0]), q = Tensor::of_slot(slots[1]), k = Tensor::of_slot(slots[2]);
  Tensor v = Tensor::of_slot(slots[3]), out = Tensor::of_slot(slots[4]), lse = Tensor::of_slot(slots[5]);
  const Tensor mask = Optional(slots[8]).tensor();  // the node passes one that holds nothing
  const Optional scale(slots[9]);
  as_python_expects("syslab::attention_backward", [&] {
    leave(slots, backward_of(dout, q, k, v, out, lse, options_of_node(slots[6], slots[7], scale)));
  });
}

}  // namespace

void register_operators() {
  const Functions& torch = functions();
  // The registrations last as long as the process; so do the objects that hold them.
  LibraryHandle library = nullptr;
  demand(torch.aoti_torch_library_init_fragment("syslab", __FILE__, __LINE__, &library), "open library 'syslab'");
  demand(torch.aoti_torch_library_def(library,
                                      "attention_forward(Tensor q, Tensor k, Tensor v, bool is_causal, str "
                                      "implementation) -> (Tensor, Tensor)"),
         "define syslab::attention_forward");
  demand(
      torch.aoti_torch_library_def(library,
                                   "attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor "
                                   "lse, bool is_causal, str implementation) -> (Tensor, Tensor, Tensor)"),
      "define syslab::attention_backward");
  for (const char* device : {"CPU", "CUDA"}) {
    LibraryHandle kernels = nullptr;
    demand(torch.aoti_torch_library_init_impl("syslab", device, __FILE__, __LINE__, &kernels), "open library 'syslab'");
    demand(torch.torch_library_impl(kernels, "attention_forward", forward, kSlotRules), "register a kernel");
    demand(torch.torch_library_impl(kernels, "attention_backward", backward, kSlotRules), "register a kernel");
  }
  // Torch's derivative of this operator calls its backward operator, whose kernels are looked up by where the tensors
  // lie. Torch has kernels of both for CPUs alone, as the name says: for GPUs they are ours.
  constexpr const char* kNode = "_scaled_dot_product_flash_attention_for_cpu";
  constexpr const char* kNodeBackward = "_scaled_dot_product_flash_attention_for_cpu_backward";
  LibraryHandle kernels = nullptr;
  demand(torch.aoti_torch_library_init_impl("aten", "CUDA", __FILE__, __LINE__, &kernels), "open library 'aten'");
  demand(torch.torch_library_impl(kernels, kNode, forward_of_node, kSlotRules), "register a kernel");
  demand(torch.torch_library_impl(kernels, kNodeBackward, backward_of_node, kSlotRules), "register a kernel");
}

}  // namespace syslab::capi::torch
