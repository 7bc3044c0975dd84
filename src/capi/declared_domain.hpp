// The domain that a user's implementation of attention declares, wherever it is declared.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/call_channel.hpp"
#include "core/declares_domain.hpp"
#include "core/text/text.hpp"
#include "core/value.hpp"
#include "ops/attention/domain.hpp"

namespace syslab::capi {

// A library's: what its optional symbol `const char* syslab_domain(void)` returns, or the manifest next to the library
// ("libmine.so.json"); an empty object where it has neither. Error(usage) where that is no JSON object.
Json library_domain(const std::string& path);

// `declared` by the implementation, overridden by the words of the command line, which are text among the case's
// parameters. Where the parameter "domain" is "usual", what is not declared is searched with the usual values.
attention::Domain domain_from(Json declared, const Params& params, const std::string& whose);

// Of the implementation that a running case asks for; none for ours.
template <typename Context>
std::optional<attention::Domain> declared_domain(Context& context) {
  const auto& request = context.request();
  if (!request.mine) return std::nullopt;
  const bool foreign = request.mine->runs_in_python();
  Json declared = Json::object();
  if (const auto told = std::dynamic_pointer_cast<DeclaresDomain>(context.channel())) {
    declared = told->declared_domain();
  }
  attention::Domain domain = domain_from(declared, context.params(), request.mine->name);
  domain.causal_in_handout = !foreign || request.device == DeviceKind::cuda;
  domain.call_has_options = !foreign;
  domain.by_autograd = foreign;
  domain.as_tests_draw = foreign && request.device == DeviceKind::cuda;
  domain.has_streams = request.device == DeviceKind::cuda;
  return domain;
}

}  // namespace syslab::capi
