#include "cli/folder_of_mine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "session/selection.hpp"
#include "session/session.hpp"
#include "submission/adapters.hpp"
#include "submission/folder.hpp"
#include "submission/survey.hpp"
#include "worker/judged/python_probe.hpp"

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

// Of attention, the function of PyTorch unless only the GPU was asked for, as `check` of the folder has it.
bool has_a_place(const submission::Adapter& adapter, const SelectionOptions& options) {
  const DeviceKind device = options.devices == std::vector<std::string>{"cuda"} ? DeviceKind::cuda : DeviceKind::cpu;
  return adapter.device == device || submission::is_of_ranks(adapter);
}

std::string door_of(const SelectionOptions& options, const std::string& text) {
  std::vector<std::string> doors;
  for (const submission::Adapter& adapter : submission::adapters()) {
    if (adapter.door.empty() || !submission::is_of(adapter, options.handout)) continue;
    if (!has_a_place(adapter, options)) continue;
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

struct NamedPath {
  std::string name, path;
};

// "me=." or "." alone, which takes the folder's name.
NamedPath named(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string path = submission::project_of(equals == std::string::npos ? text : text.substr(equals + 1));
  return {equals == std::string::npos ? submission::name_of(path) : trim(text.substr(0, equals)), path};
}

void require_unpacked(const std::string& text, const std::string& path) {
  if (fs::is_directory(path)) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("--mine '{}': a zip is for `syslab check` and `grade`; unpack it, and name its folder", text));
}

// `own`: interpreters of what is written in Python; an empty one serves by default.
void choose_python(const std::set<std::string>& own, SelectionOptions& options) {
  if (!options.python.empty() || own.empty()) return;
  if (own.size() > 1) {
    throw Error(ErrorKind::usage, fmt::format("one interpreter serves all of --mine, and {} is of one of them: say by "
                                              "--python which is meant",
                                              *own.rbegin()));
  }
  options.python = *own.begin();
}

// Why a function stays out of a hand-out's run; empty: it joins.
std::string why_out(const submission::Adapter& adapter, const submission::Answer& answer,
                    const SelectionOptions& options) {
  if (answer.state == submission::State::fails) return "fails: " + first_line(answer.why);
  if (answer.state != submission::State::implemented) return std::string(submission::to_string(answer.state));
  return has_a_place(adapter, options)
             ? ""
             : fmt::format("runs on {}: --device {}", adapter.device == DeviceKind::cuda ? "GPUs" : "CPUs",
                           to_string(adapter.device));
}

// Its functions that join, as they are spelled for --mine and with what they answer.
std::vector<Submitted> functions_of(const Context& context, const SelectionOptions& options, const NamedPath& one,
                                    const submission::Folder& folder, const submission::Survey& found) {
  const std::string file = folder.adapters().lexically_relative(folder.root()).string();
  std::vector<Submitted> joined;
  std::vector<std::string> out;
  for (const submission::Adapter& adapter : submission::adapters()) {
    if (adapter.door.empty() || !submission::is_of(adapter, options.handout)) continue;
    const std::string why = why_out(adapter, found.answers.at(std::string(adapter.function)), options);
    if (!why.empty()) {
      out.push_back(fmt::format("{} ({})", adapter.function, why));
      continue;
    }
    Submitted mine = plan::parse_mine(fmt::format("{}={}:{}", one.name, folder.adapters().string(), adapter.door));
    for (const std::string_view ids : {adapter.experiments, adapter.timed}) {
      for (std::string& id : split(ids, ' ')) {
        if (!id.empty()) mine.answers.push_back(std::move(id));
      }
    }
    mine.sources = folder.digest();
    context.console.note(
        fmt::format("{}: {}:{} answers {}", one.name, file, adapter.function, fmt::join(mine.answers, ", ")));
    joined.push_back(std::move(mine));
  }
  if (joined.empty()) {
    throw Error(ErrorKind::usage,
                printable(fmt::format("--mine '{}': no function of its {} can join the hand-out of {}: {}{}", one.path,
                                      file, options.handout, fmt::join(out, ", "),
                                      found.torch.empty() ? "; " + submission::without_torch(found) : "")));
  }
  if (!out.empty()) context.console.note(printable(fmt::format("{}: stays out: {}", one.name, fmt::join(out, ", "))));
  return joined;
}

}  // namespace

std::string python_of_folder(const Console& console, const fs::path& root, const std::string& named) {
  const std::string python = named.empty() ? submission::own_python(root) : named;
  if (python.empty() || submission::may_choose_python()) return python;
  console.warn(printable(
      fmt::format("'{}' is not used: without Landlock a folder does not choose its interpreter; if you trust it, add "
                  "--python {}",
                  python, shell_word(python))));
  return {};
}

SelectionOptions with_adapters(const Context& context, SelectionOptions options) {
  if (options.names.empty()) return options;
  std::set<std::string> own;
  for (std::string& text : options.mine) {
    const auto [name, path] = named(text);
    if (!submission::is_submission(path)) {
      if (fs::path(file_of(path)).extension() == ".py") own.insert("");
      continue;
    }
    require_unpacked(text, path);
    const std::string door = door_of(options, text);
    const submission::Folder folder(path);
    if (options.python.empty()) own.insert(python_of_folder(context.console, folder.root()));
    text = fmt::format("{}={}:{}", name, folder.adapters().string(), door);
    context.console.note(
        fmt::format("{}: {}:{}", name, folder.adapters().lexically_relative(folder.root()).string(), door));
  }
  choose_python(own, options);
  return options;
}

plan::Selection select_for_handout(const Context& context, SelectionOptions options, const std::string& memory_limit) {
  std::vector<std::string> texts;
  std::swap(texts, options.mine);
  std::vector<std::pair<NamedPath, submission::Folder>> folders;
  std::set<std::string> own;
  for (const std::string& text : texts) {
    NamedPath one = named(text);
    if (!submission::is_submission(one.path)) {
      const std::string file = file_of(one.path);
      std::error_code none;
      if (!fs::exists(file, none)) {
        throw Error(ErrorKind::usage, fmt::format("--mine '{}': there is no file or folder '{}'", text, file));
      }
      throw Error(ErrorKind::usage,
                  fmt::format("--mine '{}' is one implementation, which does not say what it answers of a whole "
                              "hand-out: name its experiments (`syslab run flash_forward --mine {}`), or the folder "
                              "whose adapters.py says so",
                              text, text));
    }
    require_unpacked(text, one.path);
    submission::Folder folder(one.path);
    if (options.python.empty()) own.insert(python_of_folder(context.console, folder.root()));
    folders.emplace_back(std::move(one), std::move(folder));
  }
  choose_python(own, options);
  worker::choose_python_interpreter(options.python);
  plan::Selection selection = to_selection(context, options);
  if (folders.empty()) return selection;
  hide_database(context.global.database);  // the survey runs what is handed in
  for (const auto& [one, folder] : folders) {
    const submission::Survey found =
        submission::survey(folder, submission::kImporting, bytes_option("--memory-limit", memory_limit));
    for (Submitted& mine : functions_of(context, options, one, folder, found)) {
      selection.mine.push_back(std::move(mine));
    }
  }
  selection.author = options.author;
  return selection;
}

}  // namespace syslab::cli
