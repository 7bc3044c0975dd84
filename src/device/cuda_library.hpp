// A library of CUDA's that is opened when somebody needs it.
#pragma once

#include <span>
#include <string>

namespace syslab::device {

// Looks for the files, in order, where the loader looks (LD_LIBRARY_PATH, the system's folders) and then in
// $CUDA_HOME/lib64 and /usr/local/cuda/lib64. It stays open until the process ends. Wheels of Python are no place to
// look: who wants theirs says so in LD_LIBRARY_PATH.
class CudaLibrary {
 public:
  // `purpose` reads "matrix products on the GPU".
  CudaLibrary(std::span<const char* const> files, const char* package, const char* purpose);

  bool found() const { return handle_ != nullptr; }
  const std::string& why() const { return why_; }    // it was not found, and the remedy
  const std::string& file() const { return file_; }  // as it was opened
  void* symbol(const char* name) const;              // null: not there

  template <typename Function>
  void look_up(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* handle_ = nullptr;
  std::string why_, file_;
};

}  // namespace syslab::device
