#include "cli/folder_of_mine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "submission/adapters.hpp"
#include "submission/folder.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

bool answers(const submission::Adapter& adapter, const std::vector<std::string>& names) {
  const auto asks = [&](std::string_view experiments) {
    return std::ranges::any_of(split(experiments, ' '), [&](const std::string& id) {
      return std::ranges::any_of(names, [&](const std::string& name) { return name == "all" || glob_match(name, id); });
    });
  };
  return asks(adapter.experiments) || asks(adapter.timed);
}

// Of attention, the one of PyTorch unless only the GPU was asked for.
std::string door_of(const SelectionOptions& options, const std::string& text) {
  const std::string device = options.devices == std::vector<std::string>{"cuda"} ? "cuda" : "cpu";
  std::vector<std::string> doors;
  for (const submission::Adapter& adapter : submission::adapters()) {
    if (adapter.door.empty() || !submission::is_of(adapter, options.handout)) continue;
    if (adapter.device != device && !submission::is_of_ranks(adapter)) continue;  // as `check` of the folder does
    if (answers(adapter, options.names)) doors.emplace_back(adapter.door);
  }
  if (doors.size() == 1) return doors.front();
  throw Error(ErrorKind::usage,
              doors.empty()
                  ? fmt::format("--mine '{}' is a folder, and no function of a hand-out's adapters.py answers "
                                "{}; `syslab check --mine {}` checks all that it has",
                                text, fmt::join(options.names, ", "), text)
                  : fmt::format("--mine '{}' is a folder, of which several functions answer {}: name one, as "
                                "NAME=tests/adapters.py:{}",
                                text, fmt::join(options.names, ", "), doors.front()));
}

}  // namespace

SelectionOptions with_adapters(const Context& context, SelectionOptions options) {
  if (options.names.empty()) return options;
  std::set<std::string> own;  // interpreters of what is written in Python; empty: the one that serves by default
  for (std::string& text : options.mine) {
    const std::size_t equals = text.find('=');
    const std::string path = submission::project_of(equals == std::string::npos ? text : text.substr(equals + 1));
    if (!submission::is_submission(path)) {
      if (path.find(".py") != std::string::npos) own.insert("");
      continue;
    }
    if (!fs::is_directory(path)) {
      throw Error(
          ErrorKind::usage,
          fmt::format("--mine '{}': a zip is for `syslab check` and `grade`; unpack it, and name its folder", text));
    }
    const std::string name = equals == std::string::npos ? submission::name_of(path) : trim(text.substr(0, equals));
    const std::string door = door_of(options, text);
    const submission::Folder folder(path);
    own.insert(submission::own_python(folder.root()));
    text = fmt::format("{}={}:{}", name, folder.adapters().string(), door);
    context.console.note(
        fmt::format("{}: {}:{}", name, folder.adapters().lexically_relative(folder.root()).string(), door));
  }
  if (!options.python.empty() || own.empty()) return options;
  if (own.size() > 1) {
    throw Error(ErrorKind::usage, fmt::format("one interpreter serves all of --mine, and {} is of one of them: say by "
                                              "--python which is meant",
                                              *own.rbegin()));
  }
  options.python = *own.begin();
  return options;
}

}  // namespace syslab::cli
