// NCCL, loaded when a communicator first needs it.
#pragma once

#include <memory>
#include <string>

#include "comm/nccl/api.hpp"

namespace syslab::comm {

class NcclLibrary {
 public:
  // `path`; if empty, the variable SYSLAB_NCCL_LIB, then the build option nccl_library, then libnccl.so.2 in the
  // loader's path and CUDA's folders. Error(comm) with the remedy if it is missing or lacks required functions. Stays
  // open until the process ends.
  //
  // Before it is loaded for the first time, NCCL_NVLS_ENABLE=0 is set in this process unless the user has set it:
  // multicast memory gains nothing below eight GPUs, makes sums depend on the run, and is unavailable on some machines
  // with suitable GPUs.
  explicit NcclLibrary(const std::string& path = {});

  const nccl::Api& api() const { return api_; }
  const std::string& file() const { return file_; }
  std::string version() const;           // "2.28.9"
  std::string nvls() const;              // "NCCL_NVLS_ENABLE=0": must be equal on all ranks
  std::string nvls_and_by_whom() const;  // "NCCL_NVLS_ENABLE=0, set by syslab"

  // Error(comm) with the call's name and NCCL's message, unless `result` is success or "in progress".
  void expect(nccl::Result result, const char* call, nccl::Comm comm = nullptr) const;

 private:
  void* handle_ = nullptr;
  std::string file_;
  nccl::Api api_;
};

}  // namespace syslab::comm
