#include "worker/judged/lacks.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "worker/judged/python_probe.hpp"
#include "worker/judged/walled_python.hpp"

namespace syslab::worker {
namespace {

constexpr std::size_t kMostOfFinding = 4096;

std::optional<Lack> asked(const Lack& claim, const std::string& file) {
  std::vector<std::string> command = trusted_script_command("syslab_lacks");
  command.insert(command.end(), {file, json_text(to_json(claim))});
  PythonAnswer answer;
  try {
    answer = ask_python(std::move(command), kMostOfFinding);
  } catch (const Error&) {  // no such interpreter
    return std::nullopt;
  }
  const Json found = json_or_discarded(answer.output);
  if (!found.is_object() || !found.value("lacks", false)) return std::nullopt;
  Lack lack = claim;
  lack.torch = found.value("torch", "none");
  lack.declared = found.value("declared", false);
  return lack;
}

}  // namespace

std::optional<Lack> established(const Lack& claim, const std::string& file) {
  static std::map<std::string, std::optional<Lack>> known;
  const std::string key = file + '\0' + json_text(to_json(claim));
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, asked(claim, file)).first->second;
}

}  // namespace syslab::worker
