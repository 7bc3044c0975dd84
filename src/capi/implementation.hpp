// An implementation of attention by name: on our ladder, or somebody's, in another process but for libraries on a GPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/call_channel.hpp"
#include "ops/attention/autograd.hpp"

namespace syslab::capi {

// Somebody's file: a shared library, or a source file of another language served over `open_channel`.
struct Mine {
  std::string path, digest;
  bool foreign = false;
  std::string language = "Python";
  device::Kind device = device::Kind::cpu;  // device of the memory passed to a library
};

// Error(usage) when the name is not on the ladder. `open_channel` is called for what runs in another process: all but
// libraries on a GPU.
attention::Rung attention_implementation(const std::string& name, const std::optional<Mine>& mine,
                                         const std::function<std::shared_ptr<CallChannel>()>& open_channel);

// The one that a running case asks for. `context`: the lab's worker::CaseContext, known here by the members that are
// read.
template <typename Context>
attention::Rung attention_implementation(Context& context) {
  const auto& request = context.request();
  std::optional<Mine> mine;
  if (request.mine) {
    mine = Mine{.path = request.mine->path,
                .digest = request.mine->digest,
                .foreign = !request.mine->python_class.empty(),
                .device = request.device == "cuda" ? device::Kind::cuda : device::Kind::cpu};
  }
  return attention_implementation(request.implementation, mine, [&context] { return context.channel(); });
}

// The same where implementations may keep more than L between the passes. Somebody's own keeps L alone.
template <typename Context>
attention::AutogradRung autograd_implementation(Context& context) {
  if (context.request().mine) return attention::as_autograd(attention_implementation(context));
  return attention::find_autograd_rung(context.request().implementation);
}

}  // namespace syslab::capi
