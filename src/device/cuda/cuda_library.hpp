// A CUDA library that is opened on first use.
#pragma once

#include <span>
#include <string>

namespace syslab::device {

// Looks for the files, in order, where the loader looks (LD_LIBRARY_PATH, the system's folders) and then in
// $CUDA_HOME/lib64 and /usr/local/cuda/lib64. Stays open until the process ends. Python wheels are not searched: add
// them to LD_LIBRARY_PATH if wanted.
class CudaLibrary {
 public:
  // `purpose` reads "matrix products on the GPU".
  CudaLibrary(std::span<const char* const> files, const char* package, const char* purpose);

  bool found() const { return handle_ != nullptr; }
  const std::string& why() const { return why_; }    // why it was not found, and the remedy
  const std::string& file() const { return file_; }  // as it was opened
  void* symbol(const char* name) const;              // null if absent

  template <typename Function>
  void look_up(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* handle_ = nullptr;
  std::string why_, file_;
};

}  // namespace syslab::device
