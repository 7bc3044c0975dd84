// Precisions of the model, and the dtype that each tensor has in one.
//
//   precision    weights  products  residual stream   what it is
//   fp64         fp64     fp64      fp64              the oracle, on the CPU
//   fp32         fp32     fp32      fp32              PyTorch's default
//   tf32         fp32     tf32      fp32              fp32 in memory; factors of products cut to TF32
//   bf16_amp     fp32     bf16      fp32              autocast: products in bf16, norms, softmax and loss in fp32
//   fp16_amp     fp32     fp16      fp32              the same in fp16, with a scaled loss
//   bf16_fused   fp32     bf16      bf16              bf16 activations throughout, fp32 master weights:
//                                                     in two halves, of which products read the upper one,
//                                                     and in `eager` whole, with a copy
//
// Source: CS336 assignment 2, benchmarking_mixed_precision; PyTorch's autocast lists.
#pragma once

#include <optional>
#include <string_view>

#include "core/dtype.hpp"
#include "device/cuda/cublas.hpp"

namespace syslab::model {

enum class Precision { fp64, fp32, tf32, bf16_amp, fp16_amp, bf16_fused };

std::string_view to_string(Precision precision);   // "bf16_amp"
Precision parse_precision(std::string_view text);  // Error(usage) with the nearest name

// How the operators of a step run: one kernel per framework operation, our fused kernels, or those recorded once as a
// CUDA graph and replayed.
enum class Variant { eager, fused, graph };

std::string_view to_string(Variant variant);

// The dtypes of one precision, by what a tensor is for.
struct DTypes {
  DType weights = DType::f32;         // as the optimizer keeps them, and their gradients and moments
  std::optional<DType> weights_copy;  // what products read instead, if different
  DType product = DType::f32;         // factors and results of matrix products
  DType residual = DType::f32;        // the stream that blocks add to
  DType normalized = DType::f32;      // output of a norm
  DType rotated = DType::f32;         // Q and K after RoPE, before attention reads them as `product`
  DType statistics = DType::f32;      // 1/rms, log-sum-exp, loss
  device::GemmMath math = device::GemmMath::exact;
};

// `eager` follows autocast to the letter: norms give fp32 and RoPE turns bf16 into fp32, both cast again before the
// next product. The fusions round once, where those casts would.
DTypes dtypes_of(Precision precision, Variant variant);

}  // namespace syslab::model
