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
  Tensor normalized;  // (rows, d); empty where it is to be made again
};

// The stream on its way from place to place.
struct ResidualStream {
  Tensor begins;               // where it starts: the embedding, or h of a place that was kept
  const Tensor* at = nullptr;  // h of the place before; none: it starts
  Tensor delta;                // what the layer since then gave
};

// The next place, with the norm's weight by its index. The first takes the stream over as it is; from the second on the
// delta is added and given back. `saved` stays where it is until the place after it was reached.
void residual_norm(const Pass& pass, const std::string& name, int weight, ResidualStream& stream, NormSaved& saved);

// What the norm gave, for the backward pass: made again from `saved.residual` where it was not kept. Reads 2 and writes
// as many bytes an element in half precision: 5 µs of 2,048 rows of 2,560 at 4 TB/s.
ConstTensorView normalized_of(const Pass& pass, const std::string& name, int weight, NormSaved& saved);

// Adds the norm's part to the gradient of the stream, `dresidual` (rows, d), in its place, and makes that of its
// weight. `dresidual` empty: the stream ends here, and its gradient is made.
void residual_norm_backward(const Pass& pass, const std::string& name, int weight, NormSaved saved,
                            const ConstTensorView& dnormalized, Tensor& dresidual);

}  // namespace syslab::model
