#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/folder_of_mine.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/resources.hpp"
#include "core/text/printable.hpp"
#include "report/table.hpp"
#include "session/session.hpp"
#include "submission/adapters.hpp"
#include "submission/folder.hpp"
#include "submission/settings.hpp"
#include "submission/survey.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;
using submission::Adapter;
using submission::State;

constexpr const char* kNewest = "2026";
constexpr std::uint64_t kMemory = std::uint64_t{4} << 30;  // beyond what libraries take

// But for what is hidden: a repository and an environment may be there already.
bool nothing_is_in(const fs::path& folder) {
  return std::ranges::all_of(fs::directory_iterator(folder), [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with(".");
  });
}

bool has_adapters(const fs::path& folder) {
  return fs::is_regular_file(folder / "tests" / "adapters.py") || fs::is_regular_file(folder / "adapters.py");
}

void write_stubs(const fs::path& folder, const std::string& handout) {
  const auto text = find_resource(fmt::format("tools/stubs/adapters-{}.py", handout));
  if (!text) throw Error(ErrorKind::internal, "this binary has no stubs of hand-out " + handout);
  fs::create_directory(folder / "tests");
  FileInMaking(folder / "tests" / "adapters.py", *text).place();
}

// Whose functions are there; both hand-outs have those of attention.
std::string handout_of(const submission::Survey& found) {
  for (const std::string handout : {"2026", "2025"}) {
    for (const Adapter& adapter : submission::adapters()) {
      const auto answer = found.answers.find(std::string(adapter.function));
      const bool there = answer != found.answers.end() && answer->second.state != State::absent;
      if (there && adapter.handouts == handout) return handout;
    }
  }
  return kNewest;
}

Json functions_of(const submission::Survey& found, const std::string& handout) {
  Json all = Json::array();
  for (const Adapter& adapter : submission::adapters()) {
    const auto answer = found.answers.find(std::string(adapter.function));
    if (!submission::is_of(adapter, handout) || answer == found.answers.end()) continue;
    all.push_back({{"function", std::string(adapter.function)},
                   {"state", std::string(submission::to_string(answer->second.state))},
                   {"why", answer->second.why}});
  }
  return all;
}

std::string table_of(const Json& functions) {
  std::vector<std::vector<std::string>> cells;
  for (const Json& one : functions) {
    std::string why = one.at("why").get<std::string>();
    std::replace(why.begin(), why.end(), '\n', ' ');
    cells.push_back({one.at("function").get<std::string>(), one.at("state").get<std::string>(), why});
  }
  return report::write_aligned(
      {{"function", "1", "text", "left"}, {"state", "1", "text", "left"}, {"note", "1", "text", "left"}}, cells);
}

}  // namespace

Exit execute(const Context& context, const InitOptions& options) {
  const fs::path here = fs::current_path();
  if (submission::read_settings(here)) {
    throw Error(ErrorKind::usage, fmt::format("{} is there already: plain `syslab check` takes it; edit it, or remove "
                                              "it and call init again",
                                              submission::kSettingsFile));
  }
  const bool stubs = !has_adapters(here) && nothing_is_in(here);
  if (!stubs && !has_adapters(here)) {
    throw Error(ErrorKind::usage,
                "there is neither tests/adapters.py nor adapters.py here: call init in the hand-out's repository, or "
                "in an empty folder, into which it writes a tests/adapters.py to fill in");
  }
  if (options.mine.find('=') != std::string::npos) {
    throw Error(ErrorKind::usage, fmt::format("--mine {}: write the name alone; the folder is this one", options.mine));
  }
  if (stubs) write_stubs(here, options.handout.empty() ? kNewest : options.handout);

  submission::Settings settings{.handout = options.handout, .mine = options.mine, .python = options.python};
  settings.mine = fmt::format("{}=.", options.mine.empty() ? submission::name_of(here) : options.mine);
  if (settings.python.empty() && !python_of_folder(context.console, here).empty()) settings.python = ".venv/bin/python";
  warn_of_missing_walls(context.console);
  hide_database(context.global.database);  // the survey runs what is in the folder
  worker::choose_python_interpreter(settings.python);
  const submission::Folder folder(here);
  const submission::Survey found = submission::survey(folder, submission::kImporting, kMemory);
  if (settings.handout.empty()) settings.handout = handout_of(found);
  submission::write_settings(here, settings);

  const std::string file = folder.adapters().lexically_relative(here).string();
  const Json functions = functions_of(found, settings.handout);
  if (context.console.json()) {
    Json json{{"handout", settings.handout},
              {"mine", settings.mine},
              {"python", settings.python},
              {"adapters", file},
              {"stubs", stubs},
              {"torch", found.torch},
              {"functions", functions}};
    add_missing_walls(json);
    context.console.print_document(json);
    return Exit::well;
  }
  std::string text = stubs ? fmt::format("wrote {}, whose functions are yours to fill in\n", file) : "";
  text += fmt::format("wrote {}: hand-out {}, {}{}\n\n{}: Python {}, torch {}\n{}\n", submission::kSettingsFile,
                      settings.handout, settings.mine, settings.python.empty() ? "" : ", " + settings.python, file,
                      found.python.empty() ? "?" : found.python, found.torch.empty() ? "none" : found.torch,
                      table_of(functions));
  if (found.torch.empty()) text += fmt::format("{}\n\n", submission::without_torch(found));
  context.console.print(printable(text + "next: syslab check\n"));
  return Exit::well;
}

}  // namespace syslab::cli
