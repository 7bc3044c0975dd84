#include "worker/cases/function_cases.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "worker/judged/foreign.hpp"
#include "worker/judged/python_probe.hpp"
#include "worker/judged/walled_python.hpp"

namespace syslab::worker {
namespace {

constexpr std::size_t kMostOfList = 64U << 20;  // of the list

std::string listed(const std::string& reference, const std::string& inputs, bool backward) {
  std::vector<std::string> argv = python_reference_command(reference, inputs, DeviceKind::cpu);
  argv.insert(argv.end(), {"--list", "1"});
  if (backward) argv.emplace_back("--backward");
  PythonAnswer answer = ask_python(std::move(argv), kMostOfList, std::nullopt);
  if (answer.is_cut) throw Error(ErrorKind::usage, "--inputs: the list of cases has more than 64 MiB");
  if (answer.exit.signalled || answer.exit.code != 0 || answer.output.empty()) {
    throw Error(ErrorKind::usage, fmt::format("--inputs {}: '{}' could not list its cases ({})", inputs,
                                              python_interpreter(), answer.exit.describe()));
  }
  return std::move(answer.output);
}

}  // namespace

std::vector<Params> function_cases(const std::string& reference, const std::string& inputs, bool backward) {
  const Json answer = json_or_discarded(listed(reference, inputs, backward));
  if (!answer.is_object())
    throw Error(ErrorKind::usage, fmt::format("--inputs {}: the list of cases is no JSON", inputs));
  if (const auto failed = answer.find("failed"); failed != answer.end()) {
    const auto why = failed->get<std::string>();
    const std::optional<Lack> lacks = claim_of(answer.value("lacks", Json()));
    const std::string remedy =
        lacks && is_missing_module(*lacks)
            ? fmt::format("; '{}' was asked, and --python or SYSLAB_PYTHON names another", python_interpreter())
            : "";
    const bool of_reference = answer.value("of", std::string()) == "reference";
    throw Error(
        ErrorKind::usage,
        fmt::format("--{}: {}{}", of_reference ? "reference " + reference : "inputs " + inputs, one_line(why), remedy));
  }
  std::vector<Params> cases;
  for (const Json& each : answer.at("cases")) {
    Params params = Params::from_json(each.at("axes"));
    params.set(kFunctionCase, each.at("name").get<std::string>());
    params.set(kFunctionProblem, answer.at("problem").get<std::string>());
    cases.push_back(std::move(params));
  }
  return cases;
}

}  // namespace syslab::worker
