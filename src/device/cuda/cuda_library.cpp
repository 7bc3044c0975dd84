#include "device/cuda/cuda_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <vector>

#include "core/process/environment_variable.hpp"

namespace syslab::device {

CudaLibrary::CudaLibrary(std::span<const char* const> files, const char* package, const char* purpose) {
  std::vector<std::string> folders = {""};
  if (const std::string home = environment_variable("CUDA_HOME"); !home.empty()) folders.push_back(home + "/lib64/");
  folders.emplace_back("/usr/local/cuda/lib64/");
  for (const std::string& folder : folders) {
    for (const char* file : files) {
      const std::string path = folder + file;
      handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_ == nullptr) continue;
      file_ = path;
      return;
    }
  }
  std::string names;
  for (const char* file : files) names += fmt::format("{}{}", names.empty() ? "" : " or ", file);
  why_ = fmt::format(
      "{} need {}, which is not found; install {} of the CUDA toolkit, or name its folder in LD_LIBRARY_PATH", purpose,
      names, package);
}

void* CudaLibrary::symbol(const char* name) const { return handle_ == nullptr ? nullptr : dlsym(handle_, name); }

}  // namespace syslab::device
