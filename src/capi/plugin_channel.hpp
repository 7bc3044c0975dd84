// A user's library in a process of its own: both ends of the channel that it is called through.
//
// Functions: attention_forward and attention_backward as in docs/worker-wire.md, with an output `workspace` behind the
// others where memory is lent; and attention_workspace, whose output `bytes` is what the library asks for a problem,
// and which it is Unsupported by saying so.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/call_channel.hpp"
#include "core/callee.hpp"
#include "ops/attention/attention.hpp"

namespace syslab::capi {

// In the library's process. `stream`: where its calls are queued, and on whose device their tensors lie; those of a
// question (attention_workspace) are the host's. Error(usage) when the library cannot be used (capi/plugin.hpp).
std::unique_ptr<Callee> plugin_callee(const std::string& name, const std::filesystem::path& library,
                                      device::Stream stream = {});

// In ours: the rung that it is. Each question and each call goes through the channel.
attention::Rung plugin_rung(const std::string& name, const std::filesystem::path& library, std::string digest,
                            std::shared_ptr<CallChannel> channel);

}  // namespace syslab::capi
