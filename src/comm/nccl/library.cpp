#include "comm/nccl/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "core/process/environment_variable.hpp"
#include "core/rank_error.hpp"

namespace syslab::comm {
namespace {

constexpr const char* kNvls = "NCCL_NVLS_ENABLE";

bool set_nvls_once() {
  static std::once_flag once;
  static bool by_us = false;
  std::call_once(once, [] {
    by_us = std::getenv(kNvls) == nullptr;
    ::setenv(kNvls, "0", 0);
  });
  return by_us;
}

std::vector<std::string> candidates(const std::string& path) {
  if (!path.empty()) return {path};
  if (std::string named = environment_variable("SYSLAB_NCCL_LIB"); !named.empty()) return {std::move(named)};
  if (const std::string built = SYSLAB_NCCL_LIBRARY; !built.empty()) return {built};
  std::vector<std::string> files{"libnccl.so.2"};
  if (const std::string home = environment_variable("CUDA_HOME"); !home.empty())
    files.push_back(home + "/lib64/libnccl.so.2");
  files.emplace_back("/usr/local/cuda/lib64/libnccl.so.2");
  return files;
}

template <typename Function>
bool look_up(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

NcclLibrary::NcclLibrary(const std::string& path) {
  set_nvls_once();
  std::string why;
  for (const std::string& file : candidates(path)) {
    handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      file_ = file;
      break;
    }
    const char* said = ::dlerror();
    why += fmt::format("{}{}", why.empty() ? "" : "; ", said == nullptr ? file : said);
  }
  if (handle_ == nullptr) {
    throw Error(
        ErrorKind::comm,
        fmt::format("the backend nccl needs NCCL, which is not found: {}; install libnccl2, or name the file in "
                    "SYSLAB_NCCL_LIB",
                    why),
        "dlopen");
  }
  std::string missing;
  const auto need = [&](const char* name, auto& function) {
    if (!look_up(handle_, name, function)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  need("ncclGetVersion", api_.ncclGetVersion);
  need("ncclGetUniqueId", api_.ncclGetUniqueId);
  need("ncclCommInitRankConfig", api_.ncclCommInitRankConfig);
  need("ncclCommFinalize", api_.ncclCommFinalize);
  need("ncclCommDestroy", api_.ncclCommDestroy);
  need("ncclCommAbort", api_.ncclCommAbort);
  need("ncclCommGetAsyncError", api_.ncclCommGetAsyncError);
  need("ncclGetErrorString", api_.ncclGetErrorString);
  need("ncclGetLastError", api_.ncclGetLastError);
  need("ncclAllReduce", api_.ncclAllReduce);
  need("ncclReduceScatter", api_.ncclReduceScatter);
  need("ncclAllGather", api_.ncclAllGather);
  need("ncclBroadcast", api_.ncclBroadcast);
  need("ncclSend", api_.ncclSend);
  need("ncclRecv", api_.ncclRecv);
  need("ncclGroupStart", api_.ncclGroupStart);
  need("ncclGroupEnd", api_.ncclGroupEnd);
  if (!missing.empty()) {
    throw Error(ErrorKind::comm,
                fmt::format("'{}' is no NCCL that this program can use, it lacks {}: name NCCL 2.14 or later in "
                            "SYSLAB_NCCL_LIB",
                            file_, missing),
                "dlsym");
  }
}

std::string NcclLibrary::version() const {
  int code = 0;
  expect(api_.ncclGetVersion(&code), "ncclGetVersion");
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

std::string NcclLibrary::nvls() const {
  const char* value = std::getenv(kNvls);
  return fmt::format("{}={}", kNvls, value == nullptr ? "" : value);
}

std::string NcclLibrary::nvls_and_by_whom() const {
  return fmt::format("{}, set by {}", nvls(), set_nvls_once() ? "syslab" : "the user");
}

void NcclLibrary::expect(nccl::Result result, const char* call, nccl::Comm comm) const {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return;
  const char* last = api_.ncclGetLastError(comm);
  throw RankError(result == nccl::kRemoteError ? Fault::peer : Fault::own,
                  fmt::format("{}: {}{}{}", call, api_.ncclGetErrorString(result),
                              last == nullptr || *last == '\0' ? "" : ": ", last == nullptr ? "" : last),
                  call);
}

}  // namespace syslab::comm
