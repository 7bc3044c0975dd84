#include "plan/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/text/text.hpp"

namespace syslab::plan {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostHashed = 256U << 20;  // of a file that a command names: larger ones are data

bool is_name(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == text.npos;
}

bool can_be_run(const fs::path& file) {
  std::error_code none;
  return fs::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0;
}

bool is_on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    if (can_be_run(fs::path(folder.empty() ? "." : folder) / program)) return true;
  }
  return false;
}

void require_program(const CommandPlace& place) {
  const std::string program = command_words(place.command).front();
  std::error_code none;
  if (!fs::is_directory(place.folder, none)) {
    throw Error(ErrorKind::usage, fmt::format("--command '{}': there is no folder '{}'", place.command, place.folder));
  }
  const bool there =
      program.find('/') == std::string::npos ? is_on_path(program) : can_be_run(fs::path(place.folder) / program);
  if (there) return;
  throw Error(
      ErrorKind::usage,
      fmt::format("--command '{}': there is no program '{}' (no shell reads it: a variable is set by `env NAME=VALUE "
                  "program`)",
                  place.command, program));
}

}  // namespace

Submitted command_mine(std::string name, const CommandPlace& place) {
  if (!is_name(name)) {
    throw Error(ErrorKind::usage,
                fmt::format("--command '{}': a name has letters, digits, '_', '-' and '.' only", name));
  }
  require_program(place);
  Submitted mine{.name = std::move(name), .what = Command{to_string(place)}, .digest = {}};
  mine.digest = digest_of(mine);
  return mine;
}

Submitted parse_command(std::string_view text) {
  const std::size_t equals = text.find('=');
  const bool named = equals != std::string_view::npos && is_name(text.substr(0, equals));
  const std::string folder = fs::current_path().lexically_normal().string();
  return command_mine(named ? std::string(text.substr(0, equals)) : "me",
                      {folder, trim(named ? text.substr(equals + 1) : text), {}});
}

std::string digest_of_command(const std::string& path) {
  const std::optional<CommandPlace> place = parse_command_place(path);
  if (!place) throw Error(ErrorKind::internal, fmt::format("'{}' is no command", path));
  std::string all = place->command;
  for (const std::string& word : command_words(place->command)) {
    const std::size_t equals = word.find('=');
    for (const std::string& name : {word, equals == std::string::npos ? "" : word.substr(equals + 1)}) {
      const fs::path file = fs::path(place->folder) / name;
      std::error_code none;
      // A program of the system's changes with the system, of which a run has its own facts.
      if (name.empty() || !fs::is_regular_file(file, none) || fs::file_size(file, none) > kMostHashed) continue;
      all += "\n" + sha256_hex_of_file(file.string());
    }
  }
  if (!place->reference.empty()) all += "\n" + digest_of_command(place->reference);
  return sha256_hex(all);
}

}  // namespace syslab::plan
