#include "worker/function_cases.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "core/json_text.hpp"
#include "core/process.hpp"
#include "judge/private_folder.hpp"
#include "judge/walls.hpp"
#include "worker/foreign.hpp"
#include "worker/python_probe.hpp"

namespace syslab::worker {
namespace {

constexpr std::size_t kMostBytes = 64U << 20;  // of the list

std::string answer_of(Process& process) {
  std::string text;
  std::array<char, 4096> chunk;
  for (ssize_t got = 0; (got = ::read(process.from_child(), chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) throw Error(ErrorKind::usage, "--inputs: the list of cases has more than 64 MiB");
  }
  return text;
}

std::string listed(const std::string& reference, const std::string& inputs) {
  std::optional<judge::PrivateFolder> folder;
  std::optional<judge::Walls> walls;
  SpawnOptions options;
  options.argv = python_reference_command(reference, inputs);
  options.capture_stderr = false;  // what the files print is for whoever wrote them
  options.argv.insert(options.argv.end(), {"--list", "1"});
  if (judge::walls_wanted()) {
    folder.emplace();
    walls.emplace(judge::WallsOptions{
        .profile = judge::Profile::python, .writable = folder->path(), .hidden = judge::keys_folder()});
    judge::hide_this_process();
    options.environment = folder->environment();
    options.confinement = walls->confinement();
  }
  options.environment.insert_or_assign("SYSLAB_LAUNCH_SECRET", "");
  Process process = Process::spawn(options);
  process.close_input();
  std::string text = answer_of(process);
  const ExitStatus exit = process.wait();
  if (exit.signalled || exit.code != 0 || text.empty()) {
    throw Error(ErrorKind::usage, fmt::format("--inputs {}: '{}' could not list its cases ({})", inputs,
                                              python_interpreter(), exit.describe()));
  }
  return text;
}

}  // namespace

std::vector<Params> function_cases(const std::string& reference, const std::string& inputs) {
  const Json answer = json_or_discarded(listed(reference, inputs));
  if (!answer.is_object())
    throw Error(ErrorKind::usage, fmt::format("--inputs {}: the list of cases is no JSON", inputs));
  if (const auto failed = answer.find("failed"); failed != answer.end()) {
    const auto why = failed->get<std::string>();
    const std::string remedy =
        why.find("ModuleNotFoundError") == std::string::npos
            ? ""
            : fmt::format("; '{}' was asked, and --python or SYSLAB_PYTHON names another", python_interpreter());
    throw Error(ErrorKind::usage, fmt::format("--inputs {}: {}{}", inputs, why, remedy));
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
