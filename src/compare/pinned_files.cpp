#include "compare/pinned_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/text/command_text.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"

namespace syslab::cli {
namespace {

constexpr std::size_t kDigits = 12;  // of a digest, for people

// "'/…/file.py:fn'", "the command './bench {n}'".
std::string place_of(const Submitted& mine) {
  if (const auto command = parse_command_place(mine.path()))
    return fmt::format("the command '{}'", one_line(command->command));
  return one_line(fmt::format("'{}{}'", mine.path(), mine.inside().empty() ? "" : ":" + mine.inside()));
}

// What else the digest is of: "", " with its reference and inputs", " with the files that it names".
const char* and_with(const Submitted& mine) {
  if (mine.is_command()) return " with the files that its words name";
  return mine.is_function() ? " with its reference and inputs" : "";
}

// "syslab compare … --mine old=OLD.py:fn --mine new=/…/file.py:fn … A:mine=old B:mine=new"
std::string comparison_of_files(const Submitted& mine) {
  if (const auto command = parse_command_place(mine.path())) {
    return fmt::format("syslab compare --command old=OLD --command new={} … A:mine=old B:mine=new",
                       shell_word(command->command));
  }
  const std::string name = mine.inside().empty() ? "" : ":" + mine.inside();
  const std::string old = "OLD" + std::filesystem::path(mine.path()).extension().string() + name;
  return fmt::format("syslab compare … --mine {} --mine {} A:mine=old B:mine=new", shell_word("old=" + old),
                     shell_word("new=" + mine.path() + name));
}

}  // namespace

std::vector<PinnedFile> changed_files(const std::vector<PinnedFile>& files) {
  std::vector<PinnedFile> changed;
  std::ranges::copy_if(files, std::back_inserter(changed), &PinnedFile::has_changed);
  return changed;
}

void require_pinned_files(const std::string& run_uid, const std::vector<PinnedFile>& files) {
  const std::vector<PinnedFile> changed = changed_files(files);
  if (changed.empty()) return;
  std::string found;
  for (const PinnedFile& file : changed) {
    found += fmt::format("{}{}, {}{}, had digest {} in run {} and has {} now", found.empty() ? "" : "; ", file.now.name,
                         place_of(file.now), and_with(file.now), file.pinned_digest.substr(0, kDigits), run_uid,
                         file.now.digest.substr(0, kDigits));
  }
  throw Error(ErrorKind::usage,
              printable(fmt::format("{}; expected what was pinned, since --build measures what it is now on both sides "
                                    "and cannot tell whether it became slower\ntry: gate without --build, or keep a "
                                    "copy of the old one: {}",
                                    found, one_line(comparison_of_files(changed.front().now)))));
}

std::string what_build_compares(const std::vector<PinnedFile>& files) {
  if (files.empty()) return {};
  std::string names;
  for (const PinnedFile& file : files) names += (names.empty() ? "" : ", ") + file.now.name;
  const bool commands = std::ranges::any_of(files, [](const PinnedFile& file) { return file.now.is_command(); });
  return fmt::format(
      "Both programs measure {} as pinned: the digest is the same. What is compared is the two builds of syslab; files "
      "that {} imports or loads are in no digest{}.",
      names, files.size() == 1 ? "it" : "one of them",
      commands ? ", nor are files that a place such as {n} or the text of sh -c names, or larger than 256 MiB" : "");
}

std::string hint_of_turns(const std::vector<PinnedFile>& files) {
  const std::vector<PinnedFile> changed = changed_files(files);
  if (changed.empty()) return "`--build` names the program that made the pin and compares both programs in turns.";
  return fmt::format("{} is not what was pinned. To compare both in turns, keep a copy of the old one: `{}`.",
                     changed.front().now.name, comparison_of_files(changed.front().now));
}

}  // namespace syslab::cli
