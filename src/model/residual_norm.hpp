// A place on the residual stream: what a layer gave is added to the stream, and the sum is normalised for the next
// layer. There are 2·layers + 1 of them; the first adds nothing.
//
//   h = x + delta,   normalized = w ∘ h / rms(h)
#pragma once

#include <string>

#include "model/pass.hpp"

namespace syslab::model {

struct NormSaved {
  Tensor residual;    // h (rows, d)
  Tensor rstd;        // 1/rms (rows)
  Tensor normalized;  // (rows, d)
};

// The stream on its way from place to place.
struct ResidualStream {
  Tensor begins;               // where it starts: the embedding, or h of a place that was kept
  const Tensor* at = nullptr;  // h of the place before; none: it starts
  Tensor delta;                // what the layer since then gave
};

// The next place. The first takes the stream over as it is; from the second on the delta is added and given back.
// `saved` stays where it is until the place after it was reached.
void residual_norm(const Pass& pass, const std::string& name, const ConstTensorView& w, ResidualStream& stream,
                   NormSaved& saved);

// Adds the norm's part to the gradient of the stream, `dresidual` (rows, d), in its place; `dw` (d) is set or added to.
// `dresidual` empty: the stream ends here, and its gradient is made.
void residual_norm_backward(const Pass& pass, const std::string& name, const ConstTensorView& w, NormSaved saved,
                            const ConstTensorView& dnormalized, Tensor& dresidual, const TensorView& dw, bool add);

}  // namespace syslab::model
