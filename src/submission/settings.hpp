// `syslab.toml`: what plain `syslab check` takes in a folder, so that no flags are needed there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace syslab::submission {

inline constexpr const char* kSettingsFile = "syslab.toml";

struct Settings {
  std::string handout;  // "2025", "2026"; never empty
  std::string mine;     // as --mine: "me=."
  std::string python;   // as --python; empty: the submission's own, else SYSLAB_PYTHON, else python3
};

// Nothing where there is no such file. Error(usage) with file and line for what is no TOML, an unknown key or a value
// that no key takes.
std::optional<Settings> read_settings(const std::filesystem::path& folder);

// Error(usage) if the file is there already or cannot be written; a file is left whole or not at all.
void write_settings(const std::filesystem::path& folder, const Settings& settings);

}  // namespace syslab::submission
