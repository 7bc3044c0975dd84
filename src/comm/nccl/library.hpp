// NCCL, opened when a communicator first needs it.
#pragma once

#include <memory>
#include <string>

#include "comm/nccl/api.hpp"

namespace syslab::comm {

class NcclLibrary {
 public:
  // `path`; where empty, the variable SYSLAB_NCCL_LIB, then the option nccl_library of the build, then libnccl.so.2
  // where the loader looks and in CUDA's folders. Error(comm) with the remedy when there is none, or one without the
  // functions that we need. Stays open until the process ends.
  //
  // Before it is opened for the first time NCCL_NVLS_ENABLE=0 is set in this process unless the user has set it:
  // multicast memory brings nothing below eight GPUs, makes sums depend on the run, and is not to be had on every
  // machine that has the GPUs for it.
  explicit NcclLibrary(const std::string& path = {});

  const nccl::Api& api() const { return api_; }
  const std::string& file() const { return file_; }
  std::string version() const;           // "2.28.9"
  std::string nvls() const;              // "NCCL_NVLS_ENABLE=0": what all ranks must have alike
  std::string nvls_and_by_whom() const;  // "NCCL_NVLS_ENABLE=0, set by syslab"

  // Error(comm) with the call's name and NCCL's words, unless `result` is success or "in progress".
  void expect(nccl::Result result, const char* call, nccl::Comm comm = nullptr) const;

 private:
  void* handle_ = nullptr;
  std::string file_;
  nccl::Api api_;
};

}  // namespace syslab::comm
