// A place on the residual stream: a layer's output is added to the stream, and the sum is normalised for the next
// layer. There are 2·layers + 1 of them; the first adds nothing.
//
//   h = x + delta,   normalized = w ∘ h / rms(h)
#pragma once

#include <string>

#include "model/pass_context.hpp"

namespace syslab::model {

struct NormSaved {
  Tensor residual;    // h (rows, d)
  Tensor rstd;        // 1/rms (rows)
  Tensor normalized;  // (rows, d); empty if it will be recomputed
};

// The stream on its way from place to place.
struct ResidualStream {
  Tensor begins;               // where it starts: the embedding, or h of a place that was kept
  const Tensor* at = nullptr;  // h of the place before; none: it starts
  Tensor delta;                // the output of the layer since then
};

// The next place, with the norm's weight by its index. The first takes the stream over as it is; from the second on the
// delta is added and given back. `saved` stays where it is until the place after it was reached.
void residual_norm(const PassContext& pass, const std::string& name, int weight, ResidualStream& stream,
                   NormSaved& saved);

// The norm's output, for the backward pass: recomputed from `saved.residual` if not saved. Reads and writes 2 bytes per
// element in half precision: 5 µs for 2,048 rows of 2,560 at 4 TB/s.
ConstTensorView normalized_of(const PassContext& pass, const std::string& name, int weight, NormSaved& saved);

// Adds the norm's part to the gradient of the stream, `dresidual` (rows, d), in its place, and makes that of its
// weight. `dresidual` empty: the stream ends here, and its gradient is made.
void residual_norm_backward(const PassContext& pass, const std::string& name, int weight, NormSaved saved,
                            const ConstTensorView& dnormalized, Tensor& dresidual);

}  // namespace syslab::model
