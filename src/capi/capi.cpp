#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstring>

#include "capi/attention_call.hpp"
#include "capi/dlpack_tensor.hpp"
#include "capi/guarded.hpp"
#include "capi/syslab.h"
#include "capi/torch/operators.hpp"
#include "core/build_info.hpp"
#include "device/buffer.hpp"
#include "device/cuda/gpu_probe.hpp"
#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "device/properties.hpp"
#include "device/stream.hpp"

namespace syslab::capi {
namespace {

using attention::Problem;
using attention::Rung;

using NamedTensors = std::initializer_list<std::pair<std::string_view, const DLTensor*>>;

// The device of a call's tensors and the stream of its work; while the object lives, that device is current.
class Site {
 public:
  Site(NamedTensors tensors, void* stream) : place_(reachable(common_place(tensors))), current_(place_) {
    stream_ = {place_.kind, stream};
    if (place_.kind == device::Kind::cpu || stream == nullptr) return;
    if (const device::Place other = device::place_of(stream_); other != place_) {
      throw Error(ErrorKind::usage, fmt::format("the stream belongs to {}, the tensors lie on {}; pass a stream of {}",
                                                to_string(other), to_string(place_), to_string(place_)));
    }
  }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;
  ~Site() { forget_accounts(place_); }

  device::Place place() const { return place_; }
  device::Stream stream() const { return stream_; }

 private:
  static device::Place reachable(device::Place place) {
    if (place.kind == device::Kind::cpu) return place;
    if (!device::built_with_cuda()) {
      throw Error(ErrorKind::device,
                  fmt::format("the tensors lie on {} and this libsyslab was built without CUDA; build "
                              "it with -Dcuda=enabled, or pass copies in host memory",
                              to_string(place)));
    }
    const int count = device::gpu_count();
    if (count == 0) {
      throw Error(ErrorKind::device, fmt::format("the tensors lie on {} and this process can use no GPU: {}",
                                                 to_string(place), device::probe_gpus().why_none));
    }
    if (place.index < 0 || place.index >= count) {
      throw Error(ErrorKind::usage,
                  fmt::format("the tensors lie on {}; this process can use {} (CUDA_VISIBLE_DEVICES may hide others)",
                              to_string(place), count == 1 ? "one GPU" : fmt::format("{} GPUs", count)));
    }
    return place;
  }

  device::Place place_;
  device::CurrentDevice current_;
  device::Stream stream_;
};

// The caller's options, with defaults for fields that an older caller does not know. A newer caller may pass a longer
// structure if all bytes beyond ours are zero, which by convention means "as before".
syslab_attention_options read_options(const syslab_attention_options* given) {
  syslab_attention_options options{};
  if (given == nullptr) return options;
  const std::size_t size = given->struct_size;
  if (size < sizeof(given->struct_size)) {
    throw Error(ErrorKind::usage,
                fmt::format("options.struct_size is {}; set it to sizeof(syslab_attention_options)", size));
  }
  std::memcpy(&options, given, std::min(size, sizeof(options)));
  // A field that ends beyond the structure is missing, even if its first bytes are there: half a pointer is useless.
  if (size < offsetof(syslab_attention_options, implementation) + sizeof(options.implementation)) {
    options.implementation = nullptr;
  }
  if (size < offsetof(syslab_attention_options, workspace_bytes) + sizeof(options.workspace_bytes)) {
    options.workspace = nullptr;
    options.workspace_bytes = 0;
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t at = sizeof(options); at < size; ++at) {
    if (bytes[at] != 0) {
      throw Error(ErrorKind::usage, fmt::format("options of {} bytes set a field that this version ({} bytes) does not "
                                                "know; use a newer libsyslab or leave the field zero",
                                                size, sizeof(options)));
    }
  }
  if (!std::isfinite(options.scale))
    throw Error(ErrorKind::usage, "options.scale is not a finite number; 0 means 1/√D");
  if (options.causal < 0 || options.causal > 2) {
    throw Error(ErrorKind::usage,
                fmt::format("options.causal is {}; 0 (none), 1 (top-left) or 2 (bottom-right)", options.causal));
  }
  return options;
}

// Either all tensors of a call have heads, or none.
void require_same_rank(const DLTensor* q, NamedTensors others) {
  for (const auto& [name, tensor] : others) {
    const int expected = name == "lse" ? q->ndim - 1 : q->ndim;
    if (tensor->ndim != expected) {
      throw Error(ErrorKind::usage, fmt::format("{} has {} dimensions where q has {}; it must have {}", name,
                                                tensor->ndim, q->ndim, expected));
    }
  }
}

ops::Workspace workspace_for(const Rung& rung, const Problem& problem, Pass pass,
                             const syslab_attention_options& options, device::Place place) {
  if (options.workspace == nullptr) return {};
  const std::size_t needed = rung.workspace_bytes(problem, pass);
  if (options.workspace_bytes < needed) {
    throw Error(ErrorKind::usage,
                fmt::format("the workspace has {} bytes, '{}' needs {}; ask syslab_attention_workspace",
                            options.workspace_bytes, rung.name, needed));
  }
  if (reinterpret_cast<std::uintptr_t>(options.workspace) % device::kAlignment != 0) {
    throw Error(ErrorKind::usage,
                fmt::format("the workspace must begin at a multiple of {} bytes", device::kAlignment));
  }
  const device::PointerInfo found = device::pointer_info(options.workspace);
  if (needed > 0 && !found.managed && found.place != place) {
    throw Error(ErrorKind::usage,
                fmt::format("the workspace lies in memory of {}, the tensors in that of {}; take it there",
                            to_string(found.place), to_string(place)));
  }
  return {options.workspace, options.workspace_bytes};
}

// A question about tensors of whose memory nothing is read.
struct ShapesAlone {
  Site site;
  ConstTensorView q, k, v;
  Problem problem;

  ShapesAlone(const DLTensor* given_q, const DLTensor* given_k, const DLTensor* given_v,
              const syslab_attention_options& options)
      : site({{"q", given_q}, {"k", given_k}, {"v", given_v}}, nullptr),
        q(read_matrix("q", given_q, Memory::unused)),
        k(read_matrix("k", given_k, Memory::unused)),
        v(read_matrix("v", given_v, Memory::unused)) {
    require_same_rank(given_q, {{"k", given_k}, {"v", given_v}});
    problem = problem_of(q, k, options);
    for (const auto& [name, view] : {std::pair{"k", k}, std::pair{"v", v}}) {
      const Shape shape{problem.batch, problem.heads_kv, problem.seq_k, problem.head_dim};
      if (view.shape != shape || view.dtype != problem.dtype) {
        throw Error(ErrorKind::usage,
                    fmt::format("{} is {} {}; beside q and k it must be {} {}", name, to_string(view.dtype),
                                to_string(view.shape), to_string(problem.dtype), to_string(shape)));
      }
    }
  }
};

}  // namespace
}  // namespace syslab::capi

using namespace syslab;        // NOLINT: what follows is the C interface itself
using namespace syslab::capi;  // NOLINT

extern "C" {

int syslab_attention_forward(const DLTensor* q, const DLTensor* k, const DLTensor* v, DLTensor* out, DLTensor* lse,
                             const syslab_attention_options* given, void* stream) {
  return guarded("syslab_attention_forward", [&] {
    const syslab_attention_options options = read_options(given);
    const Site site({{"q", q}, {"k", k}, {"v", v}, {"out", out}, {"lse", lse}}, stream);
    const attention::ForwardArgs args{read_matrix("q", q), read_matrix("k", k), read_matrix("v", v),
                                      read_matrix("out", out), read_lse(lse)};
    require_same_rank(q, {{"k", k}, {"v", v}, {"out", out}, {"lse", lse}});
    require_memory_at(site.place(), {{"q", q}, {"k", k}, {"v", v}, {"out", out}, {"lse", lse}});
    const Problem problem = problem_of(args.q, args.k, options);
    attention::validate(problem, args);
    const Rung& rung =
        choose(problem, Pass::forward, options, site.stream(), attention::walkable({args.q, args.k, args.v, args.out}));
    rung.forward(problem, args, workspace_for(rung, problem, Pass::forward, options, site.place()), site.stream());
  });
}

int syslab_attention_backward(const DLTensor* q, const DLTensor* k, const DLTensor* v, const DLTensor* out,
                              const DLTensor* lse, const DLTensor* dout, DLTensor* dq, DLTensor* dk, DLTensor* dv,
                              const syslab_attention_options* given, void* stream) {
  return guarded("syslab_attention_backward", [&] {
    const syslab_attention_options options = read_options(given);
    const NamedTensors all = {{"q", q},       {"k", k},   {"v", v},   {"out", out}, {"lse", lse},
                              {"dout", dout}, {"dq", dq}, {"dk", dk}, {"dv", dv}};
    const Site site(all, stream);
    const attention::BackwardArgs args{read_matrix("q", q),     read_matrix("k", k),   read_matrix("v", v),
                                       read_matrix("out", out), read_lse(lse),         read_matrix("dout", dout),
                                       read_matrix("dq", dq),   read_matrix("dk", dk), read_matrix("dv", dv)};
    require_same_rank(
        q, {{"k", k}, {"v", v}, {"out", out}, {"lse", lse}, {"dout", dout}, {"dq", dq}, {"dk", dk}, {"dv", dv}});
    require_memory_at(site.place(), all);
    const Problem problem = problem_of(args.q, args.k, options);
    attention::validate(problem, args);
    const Rung& rung =
        choose(problem, Pass::backward, options, site.stream(),
               attention::walkable({args.q, args.k, args.v, args.out, args.dout, args.dq, args.dk, args.dv}));
    rung.backward(problem, args, workspace_for(rung, problem, Pass::backward, options, site.place()), site.stream());
  });
}

int syslab_attention_workspace(const DLTensor* q, const DLTensor* k, const DLTensor* v, int32_t backward,
                               const syslab_attention_options* given, size_t* bytes) {
  return guarded("syslab_attention_workspace", [&] {
    if (bytes == nullptr) throw Error(ErrorKind::usage, "bytes is NULL; it takes the answer");
    *bytes = 0;
    const syslab_attention_options options = read_options(given);
    const ShapesAlone asked(q, k, v, options);
    const Pass pass = backward != 0 ? Pass::backward : Pass::forward;
    // The largest for any strides of the call's other tensors.
    for (const bool walkable : {true, false}) {
      const Rung& rung = choose(asked.problem, pass, options, asked.site.stream(), walkable);
      *bytes = std::max(*bytes, rung.workspace_bytes(asked.problem, pass));
    }
  });
}

int syslab_attention_choice(const DLTensor* q, const DLTensor* k, const DLTensor* v, int32_t backward,
                            const syslab_attention_options* given, const char** implementation, const char** because) {
  return guarded("syslab_attention_choice", [&] {
    if (implementation == nullptr || because == nullptr) {
      throw Error(ErrorKind::usage, "implementation and because take the answer; neither may be NULL");
    }
    const syslab_attention_options options = read_options(given);
    const ShapesAlone asked(q, k, v, options);
    const attention::Dispatched chosen =
        choose_with_reason(asked.problem, backward != 0 ? Pass::backward : Pass::forward, options, asked.site.stream(),
                           attention::walkable({asked.q, asked.k, asked.v}));
    *implementation = chosen.rung->name.data();
    *because = chosen.because.data();
  });
}

const char* syslab_last_error(void) { return last_error(); }

const char* syslab_torch_operators(void) {
  thread_local std::string why_not;
  why_not.clear();
  try {
    [[maybe_unused]] static const bool registered = (torch::register_operators(), true);  // what throws is tried again
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  return why_not.c_str();
}

uint32_t syslab_plugin_abi(void) { return SYSLAB_PLUGIN_ABI; }

const char* syslab_version(void) {
  try {
    return build_info().version.c_str();
  } catch (...) {
    return "unknown";
  }
}

}  // extern "C"
