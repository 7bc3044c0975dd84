// A linear layer without bias, y = x·Wᵀ with W (out, in) as its framework stores it, and the two products of its
// backward pass. Matrices are (rows, ·) with any row stride.
//
// Factors of another dtype than the precision's products are cast first, each time into temporary memory, as autocast
// does with activations.
#pragma once

#include "model/pass_context.hpp"

namespace syslab::model {

// y (rows, out) = x (rows, in) · wᵀ
void linear(const PassContext& pass, const ConstTensorView& x, const ConstTensorView& w, const TensorView& y);

// dx (rows, in) (+)= dy (rows, out) · w
void linear_input_gradient(const PassContext& pass, const ConstTensorView& dy, const ConstTensorView& w,
                           const TensorView& dx, bool add = false);

// dw (out, in) (+)= dyᵀ · x, in the weights' dtype
void linear_weight_gradient(const PassContext& pass, const ConstTensorView& dy, const ConstTensorView& x,
                            const GradientPlace& dw);

// Several layers of one input with adjacent weights, (parts·out, in), and outputs side by side in rows of y (rows,
// parts·out). One product if the model's kernels are joined, otherwise one per layer, as in a framework.
void linear_joined(const PassContext& pass, const ConstTensorView& x, const ConstTensorView& w, const TensorView& y,
                   int parts);
// Both gradients: dx is set, dw set or added to.
void linear_joined_backward(const PassContext& pass, const ConstTensorView& dy, const ConstTensorView& x,
                            const ConstTensorView& w, const TensorView& dx, const GradientPlace& dw, int parts);

}  // namespace syslab::model
