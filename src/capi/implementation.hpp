// An implementation of attention by name: on our ladder, or somebody's, in another process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "capi/declared_domain.hpp"
#include "contract/submitted.hpp"
#include "core/call_channel.hpp"
#include "ops/attention/autograd.hpp"
#include "ops/foreign.hpp"

namespace syslab::capi {

// Error(usage) when the name is not on the ladder. `open_channel` is called for what runs in another process.
attention::Rung attention_implementation(const std::string& name, const std::optional<Submitted>& mine,
                                         const std::function<std::shared_ptr<CallChannel>()>& open_channel);

// The one that a running case asks for. `context`: the lab's worker::CaseContext, known here by the members that are
// read.
template <typename Context>
attention::Rung attention_implementation(Context& context) {
  const auto& request = context.request();
  return attention_implementation(request.implementation, request.mine, [&context] { return context.channel(); });
}

// The same where implementations may keep more than L between the passes. Somebody's own keeps L alone.
template <typename Context>
attention::AutogradRung autograd_implementation(Context& context) {
  if (context.request().mine) return attention::as_autograd(attention_implementation(context));
  return attention::find_autograd_rung(context.request().implementation);
}

// Somebody's implementation of another operator, by the functions of its name; asked by laws for what it declares, fp32
// where it declares nothing. `channel` is the context's, or one around it.
template <typename Context>
ops::ForeignImplementation foreign_implementation(Context& context, std::shared_ptr<CallChannel> channel) {
  const auto& mine = *context.request().mine;
  const bool python = mine.runs_in_python();
  std::vector<DType> dtypes = declared_domain(context)->dtypes;
  if (dtypes.empty()) {
    dtypes = context.is_law() ? std::vector{DType::f32} : std::vector{DType::f32, DType::f16, DType::bf16};
  }
  return {.name = mine.name,
          .language = python ? "Python" : "C",
          .digest = mine.digest,
          .dtypes = std::move(dtypes),
          .channel = std::move(channel)};
}

}  // namespace syslab::capi
