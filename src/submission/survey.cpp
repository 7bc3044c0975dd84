#include "submission/survey.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "judge/private_folder.hpp"
#include "judge/walls.hpp"
#include "submission/adapters.hpp"
#include "submission/script.hpp"
#include "worker/judged/lacks.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::submission {

namespace {

constexpr std::array<std::string_view, 4> kStateWords{"not there", "not implemented", "implemented", "fails"};

constexpr std::size_t kMostOfAsked = 200;

std::vector<std::string> command_for(const Folder& folder, std::uint64_t memory_limit_bytes) {
  std::vector<std::string> command = worker::python_script_command("syslab_submission");
  command.insert(command.end(), {folder.adapters().string(), std::to_string(memory_limit_bytes)});
  for (const Adapter& one : adapters()) {
    if (!one.is_getter) command.emplace_back(one.function);
  }
  command.emplace_back("--");
  for (const Adapter& one : adapters()) {
    if (one.is_getter) command.emplace_back(one.function);
  }
  return command;
}

Survey failed(std::string why, bool out_of_time = false) {
  Survey all;
  for (const Adapter& one : adapters())
    all.answers[std::string(one.function)] = {.state = State::fails, .why = why, .out_of_time = out_of_time};
  return all;
}

std::string text_or_empty(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

State parse_state(std::string_view text) {
  if (text == "implemented") return State::implemented;
  if (text == "not_implemented") return State::not_implemented;
  return text == "absent" ? State::absent : State::fails;
}

}  // namespace

std::string_view to_string(State state) { return kStateWords[static_cast<std::size_t>(state)]; }

std::optional<State> state_of(std::string_view words) {
  const auto* const found = std::ranges::find(kStateWords, words);
  return found == kStateWords.end() ? std::nullopt : std::optional(static_cast<State>(found - kStateWords.begin()));
}

Survey survey(const Folder& folder, std::chrono::milliseconds timeout, std::uint64_t memory_limit_bytes) {
  const judge::PrivateFolder own;
  std::optional<judge::Walls> walls;
  if (judge::walls_wanted()) {
    walls.emplace(judge::WallsOptions{.profile = judge::Profile::python,
                                      .network = false,
                                      .memory_limit_bytes = memory_limit_bytes,
                                      .writable = own.path(),
                                      .hidden = judge::keys_folders()});
    judge::hide_this_process();
  }
  ScriptOutput done;
  try {
    done = run_script(command_for(folder, memory_limit_bytes), timeout, walls ? walls->confinement() : nullptr,
                      own.environment());
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, fmt::format("'{}' cannot be started: {}; name another with --python",
                                              worker::python_interpreter(), error.what()));
  }
  if (done.timed_out) {
    return failed(fmt::format("importing adapters.py took longer than {} s and was stopped",
                              std::chrono::duration<double>(timeout).count()),
                  true);
  }
  const Json answer = json_or_discarded(done.output);
  if (!answer.is_object() || !answer.contains("functions") || !answer["functions"].is_object()) {
    return failed(fmt::format("importing adapters.py ended the process: {}{}", done.ended.describe(),
                              done.errors.empty() ? "" : "; " + done.errors.substr(done.errors.rfind('\n') + 1)));
  }
  Survey found{one_line(text_or_empty(answer, "python")),  // the project's own code may have written it
               one_line(text_or_empty(answer, "torch")),
               one_line(text_or_empty(answer, "triton")),
               text_or_empty(answer, "asks").substr(0, kMostOfAsked),
               {}};
  for (const Adapter& one : adapters()) {
    const std::string name(one.function);
    const Json said = answer["functions"].value(name, Json::object());
    if (!said.is_object()) continue;
    found.answers[name] = {.state = parse_state(text_or_empty(said, "state")),
                           .why = text_or_empty(said, "why").substr(0, 500)};
    const std::optional<Lack> claim = claim_of(said.value("lacks", Json()));
    if (claim) found.answers[name].lacks = worker::established(*claim, folder.adapters().string());
  }
  return found;
}

std::string without_torch(const Survey& found) {
  return fmt::format(
      "Python {} has no torch, which the hand-out's functions need: --python FILE names another, and a .venv in the "
      "project's root is found by itself",
      found.python);
}

}  // namespace syslab::submission
