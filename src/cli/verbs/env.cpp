#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/verbs/verbs.hpp"
#include "core/build_info.hpp"
#include "core/text/json_text.hpp"
#include "measure/protocol.hpp"
#include "runner/environment.hpp"
#include "worker/wire/wire.hpp"

namespace syslab::cli {
namespace {

// "cpu.model: …", a line a fact.
void flatten(const std::string& path, const Json& json, std::string& text) {
  if (!json.is_structured()) {
    text += fmt::format("{}: {}\n", path, json.is_string() ? json.get<std::string>() : json_text(json));
    return;
  }
  for (const auto& [name, value] : json.items()) flatten(path.empty() ? name : path + "." + name, value, text);
}

}  // namespace

Exit execute(const Context& context, const EnvOptions&) {
  const Json facts = runner::environment_facts();
  const Json all{{"environment", facts},
                 {"comparability_key", runner::comparability_key(facts)},
                 {"build", to_json(build_info())},
                 {"worker_protocol", worker::kWireVersion},
                 {"measuring_version", measure::kMeasuringVersion}};
  if (context.console.json()) {
    context.console.print_document(all);
    return Exit::well;
  }
  std::string text;
  flatten("", all, text);
  context.console.print(text);
  return Exit::well;
}

}  // namespace syslab::cli
