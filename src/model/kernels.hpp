// Which rung of each operator a model runs on: what tells its variants and devices apart.
#pragma once

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
  // Q, K and V by one product, W1 and W3 by one, the optimizer in one pass over all parameters. Not: each tensor of the
  // model by itself, as a framework runs it.
  bool joined = true;
  // Whether the backward pass finds every activation that it reads, as a framework keeps it. Elsewhere what a norm
  // gives and the output of the feed-forward's gate are not kept: one pass over what is kept anyway makes each again.
  bool keeps_all = false;
};

// The rungs of a variant. `attention`: a rung by name; empty: the one that materialises its scores for `eager`, what
// attention::dispatch() finds for each pass otherwise. Error(usage) where a rung cannot take the precision on this
// device (half precision on the CPU, say), naming the rung and its reason.
Kernels kernels_of(const ModelConfig& config, Precision precision, Variant variant, const attention::Where& where,
                   const std::string& attention = {}, attention::Want want = attention::Want::fastest);

}  // namespace syslab::model
