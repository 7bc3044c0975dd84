#include "capi/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

#include "capi/syslab.h"
#include "core/refusal.hpp"

namespace syslab::capi {

Library::Library(std::string name, const std::filesystem::path& path) : name_(std::move(name)), path_(path.string()) {
  // An absolute path keeps the loader from searching the system's folders for a file of this name; RTLD_LOCAL keeps two
  // libraries that export the same functions apart.
  const std::filesystem::path absolute = std::filesystem::absolute(path);
  if (!std::filesystem::exists(absolute)) {
    throw Error(ErrorKind::usage, fmt::format("--mine {}: there is no file '{}'", name_, path_));
  }
  handle_ = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const std::string said = dlerror();
    // The file is there, so glibc says this of a library that it needs.
    const bool needs = said.ends_with("cannot open shared object file: No such file or directory");
    throw Error(ErrorKind::usage,
                fmt::format("--mine {}: the loader refused '{}': {}{}", name_, path_, said,
                            needs ? "; name its folder in LD_LIBRARY_PATH, or build with -Wl,-rpath" : ""),
                "dlopen");
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
