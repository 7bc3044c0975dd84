// Who lends a model its weights while a pass reads them, and takes its gradients: its own arena (model/arena.hpp), or
// somebody who has no more of them in memory than the pass needs.
//
//   const ConstTensorView w = source.weights(index.q);     // Q, K and V as one matrix
//   … queue what reads them …
//   source.done(index.q);
//
// What is lent is a bracket (model/parameters.hpp): tensors that lie side by side and are read by one product, named by
// the first of them. A pass asks in the order of its work, and asks again when it comes back to a layer: forward, when
// it makes activations again, and backward (where the embedding is not read and its gradient alone is asked for).
#pragma once

#include <functional>

#include "core/tensor.hpp"
#include "device/device.hpp"

namespace syslab::model {

// The gradient of one parameter is final: everything that writes it is queued on `stream`, and everything of the pass
// that reads the parameter, so that who updates it behind that is in nobody's way. By index in registration order, each
// exactly once in a backward pass that says so.
using GradFinal = std::function<void(int parameter, device::Stream stream)>;

// Where a gradient is written, or added to what is there.
struct GradientPlace {
  TensorView view;
  bool add = false;
};

class ParameterSource {
 public:
  virtual ~ParameterSource() = default;

  // Of the bracket that begins with `parameter`, in the dtype in which the model reads it; (rows of all, width), a norm
  // (d). For work queued on the model's stream before done(), which is told once all of it is queued.
  virtual ConstTensorView weights(int parameter) const = 0;
  virtual void done(int parameter) const = 0;

  // For work queued on the model's stream from now on until the gradients of the bracket are told to be final. `add`:
  // what the pass was asked to do.
  virtual GradientPlace gradient(int parameter, bool add) const = 0;
};

}  // namespace syslab::model
