// The rung that a model uses for each operator, by variant and device.
#pragma once

#include <cstdint>
#include <string>

#include "model/config.hpp"
#include "model/precision.hpp"
#include "ops/adamw/adamw.hpp"
#include "ops/attention/autograd.hpp"
#include "ops/attention/dispatch.hpp"
#include "ops/cross_entropy/cross_entropy.hpp"
#include "ops/elementwise/elementwise.hpp"
#include "ops/embedding/embedding.hpp"
#include "ops/global_norm/global_norm.hpp"
#include "ops/rms_norm/rms_norm.hpp"
#include "ops/rope/rope.hpp"
#include "ops/swiglu/swiglu.hpp"

namespace syslab::model {

struct Kernels {
  const rms_norm::Rung* rms_norm = nullptr;
  const rope::Rung* rope = nullptr;
  const swiglu::Rung* swiglu = nullptr;
  attention::AutogradRung attention;
  std::string attention_because;  // why this one: the row of the dispatch rule, or what the variant stands for
  const cross_entropy::Rung* cross_entropy = nullptr;
  const embedding::Rung* embedding = nullptr;
  const elementwise::Rung* elementwise = nullptr;
  const adamw::Rung* adamw = nullptr;
  const global_norm::Rung* global_norm = nullptr;
  // Q, K and V by one product, W1 and W3 by one, the optimizer in one pass over all parameters. If false: each tensor
  // of the model separately, as in a framework.
  bool joined = true;
  // Whether every activation that the backward pass reads is saved, as in a framework. Otherwise norm outputs and the
  // output of the feed-forward's gate are not saved: one pass over saved tensors recomputes each.
  bool keeps_all = false;
};

// What attention's rung is chosen by.
struct AttentionWish {
  std::string rung;  // by name; empty: the one that materialises its scores for `eager`, what attention::dispatch()
                     // finds for each pass otherwise
  attention::Want want = attention::Want::fastest;
  std::int64_t batch = 1, seq = 0;  // of a pass; 0: the model's context
};

// The rungs of a variant. Error(usage) if a rung does not support the precision on this device (half precision on the
// CPU, say), naming the rung and its reason.
Kernels kernels_of(const ModelConfig& config, Precision precision, Variant variant, const attention::Where& where,
                   const AttentionWish& attention = {});

}  // namespace syslab::model
