#include "capi/library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "capi/syslab.h"
#include "core/files/elf_file.hpp"
#include "core/refusal.hpp"
#include "core/text/text.hpp"

namespace syslab::capi {
namespace {

constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;

// Of the libraries that `file` names as needed, those that the loader can open neither in the folders that `file` names
// nor in its own.
std::vector<std::string> needed_and_refused(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::optional<ElfFile> elf = ElfFile::read(bytes);
  if (!elf) return {};
  std::vector<std::filesystem::path> folders{""};
  for (const std::int64_t tag : {DT_RPATH, DT_RUNPATH}) {
    for (const std::string_view list : elf->dynamic_texts(tag)) {
      for (std::string folder : split(list, ':')) {
        for (const std::string_view origin : {"${ORIGIN}", "$ORIGIN"}) {
          if (folder.starts_with(origin)) folder.replace(0, origin.size(), file.parent_path().string());
        }
        folders.emplace_back(folder);
      }
    }
  }
  std::vector<std::string> refused;
  for (const std::string_view name : elf->dynamic_texts(DT_NEEDED)) {
    // What opens stays open: it may have started threads.
    const bool opens = std::ranges::any_of(folders, [&](const std::filesystem::path& folder) {
      return dlopen((folder / name).c_str(), kFlags) != nullptr;
    });
    if (!opens) refused.emplace_back(name);
  }
  return refused;
}

}  // namespace

Library::Library(std::string name, const std::filesystem::path& path) : name_(std::move(name)), path_(path.string()) {
  // An absolute path keeps the loader from searching the system's folders for a file of this name; RTLD_LOCAL keeps two
  // libraries that export the same functions apart.
  const std::filesystem::path absolute = std::filesystem::absolute(path);
  if (!std::filesystem::exists(absolute)) {
    throw Error(ErrorKind::usage, fmt::format("--mine {}: there is no file '{}'", name_, path_));
  }
  handle_ = dlopen(absolute.c_str(), kFlags);
  if (handle_ == nullptr) {
    std::string text = fmt::format("--mine {}: the loader refused '{}': {}", name_, path_, dlerror());
    if (const std::vector<std::string> refused = needed_and_refused(absolute); !refused.empty()) {
      text += fmt::format(
          "; it needs {}, which cannot be loaded; name the folder in LD_LIBRARY_PATH, or build with -Wl,-rpath",
          fmt::join(refused, " and "));
    }
    throw Error(ErrorKind::usage, text, "dlopen");
  }
}

void* Library::address_of(const char* symbol) const { return dlsym(handle_, symbol); }

void Library::require(const std::string& missing) const {
  std::string lacks;
  decltype(&syslab_plugin_abi) plugin_abi = nullptr;
  look_up("syslab_plugin_abi", plugin_abi, lacks);
  if (!missing.empty()) lacks += (lacks.empty() ? "" : ", ") + missing;
  if (!lacks.empty()) {
    throw Error(ErrorKind::usage, fmt::format("--mine {}: '{}' does not export {}; syslab.h declares what it must "
                                              "(a C++ library needs extern \"C\")",
                                              name_, path_, lacks));
  }
  if (const std::uint32_t abi = plugin_abi(); abi != SYSLAB_PLUGIN_ABI) {
    throw Error(ErrorKind::usage, fmt::format("--mine {}: '{}' speaks ABI {}, this syslab speaks {}; rebuild it with "
                                              "this version's syslab.h",
                                              name_, path_, abi, SYSLAB_PLUGIN_ABI));
  }
}

std::string Library::error_text() const {
  auto* const last_error = find<decltype(syslab_last_error)>("syslab_last_error");
  const char* text = last_error == nullptr ? nullptr : last_error();
  return text == nullptr || *text == '\0' ? "it gave no reason" : text;
}

void Library::check_status(const char* function, int status) const {
  if (status == SYSLAB_OK) return;
  if (status == SYSLAB_ERROR_UNSUPPORTED) throw Unsupported(fmt::format("'{}': {}", name_, error_text()));
  const std::string text = fmt::format("'{}': {} returned {}: {}", name_, function, status, error_text());
  if (status == SYSLAB_ERROR_OUT_OF_MEMORY) throw Error(ErrorKind::oom, text, function);
  if (status == SYSLAB_ERROR_DEVICE) throw Error(ErrorKind::device, text, function);
  throw Refusal(text, function);
}

}  // namespace syslab::capi
