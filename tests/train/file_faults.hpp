// Faults of the file system for one thread of a test program: its n-th call that changes files fails, or is never made,
// since the process is killed before it.
//
//   const FileFault fault(3, ENOSPC);       // of this thread, as long as it lives
//   save(…);
//
// file_faults.cpp stands in for these functions in the program that it is linked into, and calls the system's.
#pragma once

#include <string>
#include <vector>

namespace syslab::test {

class FileFault {
 public:
  static constexpr int kKill = -1;
  // `at`: counted from 0 among fallocate(), write(), fsync() and rename(); −1: none, the calls are listed alone.
  // `error`: its errno, or kKill.
  explicit FileFault(int at = -1, int error = 0);
  FileFault(const FileFault&) = delete;
  FileFault& operator=(const FileFault&) = delete;
  ~FileFault();

  // Those made so far, the one that failed too: "write", "fsync folder", "rename manifest.safetensors".
  const std::vector<std::string>& calls() const { return calls_; }

  // Of the functions that stand in: whether this call fails, its errno set.
  bool meets(std::string call);

 private:
  int at_, error_;
  std::vector<std::string> calls_;
};

}  // namespace syslab::test
