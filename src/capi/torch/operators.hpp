// Attention as operators of torch's dispatcher, for CPU and CUDA tensors:
//
//   syslab::attention_forward(Tensor q, Tensor k, Tensor v, bool is_causal, str implementation) -> (Tensor, Tensor)
//   syslab::attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, bool is_causal,
//                              str implementation) -> (Tensor, Tensor, Tensor)
//
// Shapes, dtypes and masks are those of syslab.h; "" leaves the choice of the implementation to the library. Rows whose
// elements do not lie side by side are copied first. New tensors and the workspace come from torch's allocator, and
// work goes to torch's current stream, so that a call can be captured in a graph of torch. What torch knows of its
// tensors is not asked again: that is what makes these calls cheaper than those through DLPack.
//
// Their derivative is a torch.autograd.Function (src/python/syslab_torch.py): the stable interface has no nodes of
// autograd. But torch has one, in C++, for an operator of the same arguments,
//
//   aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p,
//                                                     bool is_causal, *, Tensor? attn_mask, float? scale)
//                                                     -> (Tensor, Tensor)
//
// which calls that operator's backward operator wherever the tensors lie. Torch has kernels of the two for CPU tensors
// alone; those for CUDA tensors are registered here, the library's choice without dropout, mask and scale. So a call on
// a GPU and its derivative run no Python.
#pragma once

namespace syslab::capi::torch {

// Once in a process. Error(device) as functions() (stable_abi.hpp), or if the dispatcher refuses.
void register_operators();

}  // namespace syslab::capi::torch
