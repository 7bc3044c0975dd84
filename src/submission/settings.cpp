#include "submission/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"

namespace syslab::submission {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargest = 64 << 10;

[[noreturn]] void fail(const toml::source_region& at, std::string_view what) {
  throw Error(ErrorKind::usage, fmt::format("{}, line {}: {}", kSettingsFile, at.begin.line, one_line(what)));
}

Settings settings_of(const toml::table& table) {
  Settings settings;
  const std::vector<std::pair<std::string, std::string*>> keys{
      {"handout", &settings.handout}, {"mine", &settings.mine}, {"python", &settings.python}};
  std::vector<std::string> names;
  for (const auto& [name, place] : keys) names.push_back(name);
  for (const auto& [key, value] : table) {
    const auto known = std::ranges::find(keys, key.str(), &std::pair<std::string, std::string*>::first);
    if (known == keys.end()) fail(value.source(), unknown_name("key", key.str(), names));
    if (!value.is_string()) fail(value.source(), fmt::format("'{}' must be a text in quotation marks", key.str()));
    *known->second = **value.as_string();
    if (!is_printable(*known->second)) {
      fail(value.source(),
           fmt::format("'{}' must be one line of text that can be printed, found \"{}\"", key.str(), *known->second));
    }
  }
  if (settings.handout != "2025" && settings.handout != "2026") {
    fail(table.source(), fmt::format("handout = \"{}\": there is \"2025\" and \"2026\"", settings.handout));
  }
  if (settings.mine.empty()) fail(table.source(), "'mine' is missing: mine = \"me=.\" takes this folder");
  return settings;
}

// A basic string of TOML.
std::string toml_text(std::string_view text) {
  std::string all = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') all += '\\';
    all += letter;
  }
  return all + '"';
}

}  // namespace

std::optional<Settings> read_settings(const fs::path& folder) {
  const fs::path file = folder / kSettingsFile;
  std::error_code none;
  if (!fs::exists(file, none)) return std::nullopt;
  try {
    return settings_of(toml::parse(read_user_file(file, kLargest), std::string_view(kSettingsFile)));
  } catch (const toml::parse_error& error) {
    fail(error.source(), error.description());
  }
}

void write_settings(const fs::path& folder, const Settings& settings) {
  const fs::path file = folder / kSettingsFile;
  std::error_code none;
  if (fs::exists(fs::symlink_status(file, none))) {
    throw Error(ErrorKind::usage, fmt::format("{} is there already: edit it, or remove it first", kSettingsFile));
  }
  std::string text = fmt::format(
      "# What plain `syslab check` takes in this folder; its options come before this.\nhandout = {}\nmine = {}\n",
      toml_text(settings.handout), toml_text(settings.mine));
  if (!settings.python.empty()) text += fmt::format("python = {}\n", toml_text(settings.python));
  FileInMaking(file, text).place();
}

}  // namespace syslab::submission
