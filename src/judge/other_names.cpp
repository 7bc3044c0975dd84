#include "judge/other_names.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/error.hpp"

namespace syslab::judge {
namespace {

namespace fs = std::filesystem;

struct Mount {
  std::string device, root, at;  // which folder of the device is seen where
};

// A blank, a tab, a line break and a '\' are written as '\' and three octal digits (proc(5)).
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw": of each line fields 3 to 5.
std::vector<Mount> mounts_in(std::string_view text) {
  std::vector<Mount> all;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, parent;
    Mount one;
    if (words >> number >> parent >> one.device >> one.root >> one.at) {
      all.push_back({one.device, unescaped(one.root), unescaped(one.at)});
    }
  }
  return all;
}

bool is_within(const std::string& path, const std::string& folder) {
  return folder == "/" || path == folder || path.starts_with(folder + "/");
}

// `path` as seen from `folder`, which it lies in: "" or "/…".
std::string below(const std::string& path, const std::string& folder) {
  return folder == "/" ? (path == "/" ? "" : path) : path.substr(folder.size());
}

std::string joined(const std::string& folder, const std::string& rest) {
  if (rest.empty()) return folder;
  return folder == "/" ? rest : folder + rest;
}

void refuse_hard_link(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode) || found.st_nlink < 2) return;
  throw Error(ErrorKind::usage,
              fmt::format("file '{}' has {} hard links; expected one, since judged code could read the file by another "
                          "name\ntry: cp '{}' COPY && mv COPY '{}'",
                          path.string(), found.st_nlink, path.string(), path.string()));
}

// Where the place is seen, or a part of it.
void append_others(const std::string& path, const std::vector<Mount>& all, std::vector<std::string>& others) {
  const Mount* own = nullptr;  // the last one of the deepest covers the others
  for (const Mount& one : all) {
    if (is_within(path, one.at) && (own == nullptr || one.at.size() >= own->at.size())) own = &one;
  }
  if (own == nullptr) return;
  const std::string inside = joined(own->root, below(path, own->at));
  for (const Mount& one : all) {
    if (one.device != own->device || !(is_within(inside, one.root) || is_within(one.root, inside))) continue;
    std::string there = is_within(inside, one.root) ? joined(one.at, below(inside, one.root)) : one.at;
    if (there != path && std::ranges::find(others, there) == others.end()) others.push_back(std::move(there));
  }
}

}  // namespace

std::vector<std::string> other_mounts_of(const std::string& path, std::string_view mounts) {
  const std::vector<Mount> all = mounts_in(mounts);
  std::vector<std::string> others;
  append_others(path, all, others);
  for (const Mount& one : all) {
    if (one.at != path && is_within(one.at, path)) append_others(one.at, all, others);
  }
  std::erase_if(others, [&](const std::string& one) { return is_within(one, path); });  // hidden with it
  return others;
}

std::vector<std::string> other_mounts_of(const std::string& path) {
  std::ifstream file("/proc/self/mountinfo");
  return other_mounts_of(path, std::string(std::istreambuf_iterator<char>(file), {}));
}

void refuse_hard_links(const std::vector<std::string>& hidden, const std::vector<std::string>& keys) {
  for (const std::string& one : hidden) {
    if (std::ranges::find(hidden, one + "-wal") == hidden.end()) continue;
    for (const char* beside : {"", "-wal", "-journal"}) refuse_hard_link(one + beside);
  }
  for (const std::string& folder : keys) {
    std::error_code none;
    for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
      refuse_hard_link(entry->path());
    }
  }
}

}  // namespace syslab::judge
