#include "core/files/state_folder.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/process/environment_variable.hpp"

namespace syslab {
namespace {

namespace fs = std::filesystem;

// $XDG_STATE_HOME; empty where it is not set, or relative: that is to be ignored (XDG Base Directory Specification).
fs::path said_folder() {
  const std::string said = environment_variable("XDG_STATE_HOME");
  return said.starts_with('/') ? said : std::string();
}

// Of the user's entry in the system's list; empty where there is none. Asked once: what getpwuid() returns is shared by
// all threads.
const fs::path& listed_home() {
  static const fs::path home = [] {
    const passwd* const entry = ::getpwuid(::geteuid());
    return fs::path(entry == nullptr || entry->pw_dir == nullptr ? "" : entry->pw_dir);
  }();
  return home;
}

// Best first.
std::vector<fs::path> homes() {
  std::vector<fs::path> all;
  if (std::string said = environment_variable("HOME"); said.starts_with('/')) all.emplace_back(std::move(said));
  if (!listed_home().empty()) all.push_back(listed_home());
  return all;
}

void make_private(const fs::path& folder) {
  if (folder.has_parent_path() && !fs::exists(folder.parent_path())) make_private(folder.parent_path());
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  const int error = errno;
  throw_errno(
      kind_of_write_error(error, ErrorKind::config),
      fmt::format("make the folder '{}' for this user's keys (XDG_STATE_HOME says where else)", folder.string()), error,
      "mkdir");
}

}  // namespace

std::vector<fs::path> state_folder_paths() {
  std::vector<fs::path> all;
  if (const fs::path said = said_folder(); !said.empty()) all.push_back(said / "syslab");
  for (const fs::path& home : homes()) {
    fs::path folder = home / ".local" / "state" / "syslab";
    if (std::ranges::find(all, folder) == all.end()) all.push_back(std::move(folder));
  }
  return all;
}

fs::path state_folder_path() {
  const std::vector<fs::path> all = state_folder_paths();
  if (all.empty()) {
    throw Error(ErrorKind::config,
                "there is no folder for this user's keys: neither XDG_STATE_HOME nor HOME names one; set "
                "XDG_STATE_HOME to a folder of your own");
  }
  return all.front();
}

fs::path state_folder() {
  const fs::path folder = state_folder_path();
  std::error_code unreadable;
  if (!fs::exists(fs::symlink_status(folder, unreadable))) make_private(folder);
  struct stat there {};
  if (::lstat(folder.c_str(), &there) != 0) {
    throw_errno(ErrorKind::config, fmt::format("look at the folder '{}' of this user's keys", folder.string()), errno,
                "lstat");
  }
  const auto refuse = [&](std::string_view what, std::string_view remedy) {
    throw Error(ErrorKind::config,
                fmt::format("the folder '{}' of this user's keys {}: {}", folder.string(), what, remedy));
  };
  if (!S_ISDIR(there.st_mode)) {
    refuse(S_ISLNK(there.st_mode) ? "is a symbolic link" : "is no folder",
           "remove it, or set XDG_STATE_HOME to the folder that is meant");
  }
  if (there.st_uid != ::geteuid()) {
    refuse(fmt::format("belongs to user {}, and this is user {}", there.st_uid, ::geteuid()),
           "set XDG_STATE_HOME to a folder of your own");
  }
  if ((there.st_mode & 077) != 0) {
    refuse(fmt::format("lets others in (mode {:03o})", there.st_mode & 0777),
           fmt::format("chmod 700 '{}', and remove the keys in it if others may have read them", folder.string()));
  }
  return folder;
}

}  // namespace syslab
