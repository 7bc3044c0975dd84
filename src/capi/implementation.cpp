#include "capi/implementation.hpp"

#include "capi/plugin_channel.hpp"
#include "ops/attention/foreign.hpp"

namespace syslab::capi {

attention::Rung attention_implementation(const std::string& name, const std::optional<Submitted>& mine,
                                         const std::function<std::shared_ptr<CallChannel>()>& open_channel) {
  if (!mine) return attention::find_rung(name);
  if (!mine->runs_in_python()) return plugin_rung(name, mine->path(), mine->digest, open_channel());
  return attention::foreign_rung(name, "Python", mine->digest, open_channel());
}

}  // namespace syslab::capi
