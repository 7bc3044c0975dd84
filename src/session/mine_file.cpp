#include "session/mine_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "core/text/command_text.hpp"
#include "core/text/printable.hpp"

namespace syslab::cli {
namespace {

// `text` where a shell takes it as it stands, else `otherwise`: somebody will copy the line, and a stored text may hold
// anything.
std::string pasted(const std::string& text, const char* otherwise) {
  static constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:";
  return !text.empty() && text.find_first_not_of(kPlain) == std::string::npos ? text : otherwise;
}

constexpr const char* kNewCommand = "start a new run: `syslab run --command NAME='PROGRAM ...'`";

// A function's reference and inputs are those of the run where only its own file is given.
Submitted with_recorded(Submitted given, const std::string& recorded, bool is_own) {
  if (given.is_function() || !given.runs_in_python() || !is_own || !plan::names_function(recorded)) return given;
  const Submitted before = plan::parse_mine(given.name + "=" + recorded);
  given = compared_with(std::move(given), *before.comparison());
  given.digest = plan::digest_of(given);
  return given;
}

}  // namespace

MineFiles::MineFiles(const store::Store& store, const std::vector<std::string>& given, std::string command)
    : store_(store), command_(std::move(command)) {
  for (const std::string& text : given) given_.push_back(plan::parse_mine(text));
}

Submitted MineFiles::find(store::RowId run, const store::ImplementationRow& recorded, ChangedFile changed) {
  const auto given = std::ranges::find(given_, recorded.name, &Submitted::name);
  if (const auto command = parse_command_place(recorded.path)) {
    if (given == given_.end()) return find_command(run, recorded, *command, changed);
    throw Error(ErrorKind::usage,
                printable(fmt::format("run {} starts the command '{}' as '{}', which --mine cannot replace; {}",
                                      store_.run_uid(run), command->command, recorded.name, kNewCommand)));
  }
  if (given != given_.end()) return with_recorded(*given, recorded.path, is_own(run));
  const std::string name = pasted(recorded.name, "NAME");
  if (recorded.path.empty()) {
    const std::string uid = store_.run_uid(run);
    const auto stored = store_.find_run(uid);
    throw Error(
        ErrorKind::usage,
        printable(fmt::format(
            "run {} {}names no file for '{}', so that its cases cannot run again here; start a run of your own, and "
            "name that one: `syslab run EXPERIMENT --mine {}=FILE`",
            uid, stored && stored->verb == "import" ? "was imported and " : "", recorded.name, name)));
  }
  if (!is_own(run)) {
    throw Error(
        ErrorKind::usage,
        printable(fmt::format("nothing proves that run {} was made by you: the file '{}' that it names for '{}' is not "
                              "loaded. Say which file is meant: `{} --mine {}=FILE`",
                              store_.run_uid(run), recorded.path, recorded.name, command_, name)));
  }
  Submitted mine = plan::parse_mine(recorded.name + "=" + recorded.path);
  if (changed == ChangedFile::refused && mine.digest != recorded.digest) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' has changed since run {} was made, and is not loaded unasked; to load "
                            "what it is now: `{} --mine {}={}`",
                            mine.path(), store_.run_uid(run), command_, name, pasted(recorded.path, "FILE")));
  }
  return mine;
}

Submitted MineFiles::find_command(store::RowId run, const store::ImplementationRow& recorded,
                                  const CommandPlace& command, ChangedFile changed) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::usage, printable(fmt::format("{}; {}", why, kNewCommand)));
  };
  if (!is_own(run)) {
    refuse(fmt::format("nothing proves that run {} was made by you: its command '{}' is not started",
                       store_.run_uid(run), command.command));
  }
  Submitted mine;
  try {
    mine = plan::parse_mine(recorded.name + "=" + recorded.path);
  } catch (const Error& error) {  // its folder or its program is gone
    refuse(fmt::format("run {} cannot start its command again in '{}': {}", store_.run_uid(run), command.folder,
                       error.what()));
  }
  if (changed == ChangedFile::refused && mine.digest != recorded.digest) {
    refuse(fmt::format("the command '{}', or a file that it names, has changed since run {} was made", command.command,
                       store_.run_uid(run)));
  }
  return mine;
}

void MineFiles::require_may_name_files(store::RowId run, const plan::PlannedCase& planned) {
  const std::vector<registry::NamedFile> named = planned.experiment->files_named_by(planned.params);
  if (named.empty() || is_own(run)) return;
  const registry::NamedFile& one = named.front();
  throw Error(
      ErrorKind::usage,
      printable(fmt::format("nothing proves that run {} was made by you: the file '{}' that its axis {} names is "
                            "neither read nor written. To use a file of yours, start a run of your own: `syslab "
                            "run {} -a {}=FILE`",
                            store_.run_uid(run), one.file, one.axis, planned.experiment->id, one.axis)));
}

bool MineFiles::is_own(store::RowId run) {
  const auto known = own_.find(run);
  return known != own_.end() ? known->second : own_.emplace(run, store_.is_own(run)).first->second;
}

void MineFiles::require_known(const std::vector<std::string>& names) const {
  for (const Submitted& mine : given_) {
    if (std::ranges::find(names, mine.name) != names.end()) continue;
    throw Error(
        ErrorKind::usage,
        fmt::format(
            "--mine {}=…: there is no implementation of that name that somebody handed in; {}", mine.name,
            names.empty() ? "there is none at all" : printable(fmt::format("there is {}", fmt::join(names, ", ")))));
  }
}

std::vector<std::string> mine_names(const std::vector<store::PlanState>& states) {
  std::set<std::string> names;
  for (const store::PlanState& state : states) {
    if (state.plan.implementation.is_mine) names.insert(state.plan.implementation.name);
  }
  return {names.begin(), names.end()};
}

}  // namespace syslab::cli
