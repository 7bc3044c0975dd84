// Provides a model's weights while a pass reads them, and receives its gradients: the model's own arena
// (model/arena.hpp), or a source that keeps only the currently needed weights in memory.
//
//   const ConstTensorView w = source.weights(index.q);     // Q, K and V as one matrix
//   … queue what reads them …
//   source.done(index.q);
//
// It lends brackets (model/parameters.hpp): adjacent tensors that are read by one product, named by the first of them.
// A pass asks in the order of its work, and asks again when it comes back to a layer: forward, when it makes
// activations again, and backward (where the embedding is not read and its gradient alone is asked for).
#pragma once

#include <functional>

#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::model {

// The gradient of one parameter is final: everything that writes it is queued on `stream`, and so is all work of the
// pass that reads the parameter, so that it may be updated after that. By index in registration order, each exactly
// once in a backward pass that says so.
using GradFinal = std::function<void(int parameter, device::Stream stream)>;

// Where a gradient is written, or added to the present content.
struct GradientPlace {
  TensorView view;
  bool add = false;
};

class ParameterSource {
 public:
  virtual ~ParameterSource() = default;

  // Of the bracket that begins with `parameter`, in the dtype in which the model reads it; (rows of all, width), a norm
  // (d). For work queued on the model's stream before done(), which is called once all of it is queued.
  virtual ConstTensorView weights(int parameter) const = 0;
  virtual void done(int parameter) const = 0;

  // For work queued on the model's stream from now on until the gradients of the bracket are reported as final. `add`:
  // what the pass was asked to do.
  virtual GradientPlace gradient(int parameter, bool add) const = 0;
};

}  // namespace syslab::model
