// The parameters of every layer's code: sizes, dtypes, rungs, the stream, and observers.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "device/cuda/nvtx.hpp"
#include "model/config.hpp"
#include "model/kernels.hpp"
#include "model/parameter_source.hpp"
#include "model/parameters.hpp"
#include "model/precision.hpp"
#include "model/tensor.hpp"

namespace syslab::model {

// Told of every tensor of a pass once the work that fills it is queued: "layers.3.attn.qkv". For reports of dtypes and
// sizes, and for finding the first tensor that holds a NaN (synchronise before reading elements).
using Observer = std::function<void(const std::string& name, const ConstTensorView& tensor)>;

// One forward or backward pass over `batch` sequences of `seq` tokens.
struct PassContext {
  const ModelConfig& config;
  const Kernels& kernels;
  const DTypes& dtypes;
  const ParameterLayout& layout;
  const ParameterSource& parameters;
  std::int64_t batch = 1, seq = 1;
  device::Stream stream;
  const Observer* observer = nullptr;
  bool add = false;                       // backward: add to existing gradients
  const GradFinal* grad_final = nullptr;  // backward: called for final gradients

  std::int64_t rows() const { return batch * seq; }

  Tensor tensor(std::string name, DType dtype, const Shape& shape) const {
    return Tensor({std::move(name), dtype, shape}, stream, device::MemoryCategory::activation);
  }
  // The range of a part of the model, from the last word of its name: of "layers.3.attn", "attn".
  device::NvtxRange part(const std::string& name) const {
    const std::size_t dot = name.rfind('.');
    return device::NvtxRange(name.c_str() + (dot == std::string::npos ? 0 : dot + 1), device::RangeKind::part);
  }
  // The range of one call of an operator, for profilers and timelines; it ends with its scope.
  device::NvtxRange call(const char* operation, const RungInfo& rung) const {
    return device::NvtxRange(operation, device::RangeKind::kernel, stream, rung.name);
  }
  // y = x, rounded to y's dtype. Matrices.
  void cast(const ConstTensorView& x, const TensorView& y) const {
    const device::NvtxRange range = call("cast", *kernels.elementwise);
    kernels.elementwise->cast({x.size(0), x.size(1)}, {x, y}, stream);
  }
  // `work` on the weights of a bracket (model/parameter_source.hpp), which nothing else reads.
  template <typename Work>
  void with_weights(int parameter, const Work& work) const {
    work(parameters.weights(parameter));
    parameters.done(parameter);
  }
  GradientPlace gradient(int parameter) const { return parameters.gradient(parameter, add); }
  // All that writes the gradients of a bracket is queued.
  void gradient_final(int parameter) const {
    if (grad_final == nullptr || !*grad_final) return;
    for (const int one : layout.bracket(parameter)) (*grad_final)(one, stream);
  }
  void made(const std::string& name, const ConstTensorView& tensor) const {
    if (observer != nullptr && *observer) (*observer)(name, tensor);
  }
};

// Whether a layer's forward pass ends with its output, or with what is kept of it (which is all that a backward pass
// needs).
enum class Output { wanted, unwanted };

// What a layer was given, in its backward pass: asked for once, when the products that read it are next.
using Given = std::function<ConstTensorView()>;

// Memory for one call of a rung: freed in stream order by the destructor.
class Scratch {
 public:
  Scratch(std::size_t bytes, device::Stream stream)
      : buffer_(bytes, "workspace", stream, device::MemoryCategory::workspace) {}
  operator ops::Workspace() const { return {buffer_.data(), buffer_.bytes()}; }  // NOLINT

 private:
  device::Buffer buffer_;
};

}  // namespace syslab::model
