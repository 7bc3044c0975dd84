// A folder in TMPDIR (or /tmp) for as long as an object lives. Its process holds a lock on it, so that what a killed
// one left can be told from what is in use, whatever process numbers say: the system lets go of a lock with its
// process.
#pragma once

#include <string>

#include "core/process/process.hpp"

namespace syslab {

class TemporaryFolder {
 public:
  // Enterable by this user alone. Error(config) with what to do if it cannot be made, Error(internal) if the disk is
  // full or read-only.
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  // With all that is in it. What takes longer than kMostCleaning (core/files/remove_tree.hpp) is left to
  // remove_left_folders().
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileDescriptor lock_;
};

// The same errors if none can be made. Asked before a run begins, so that it does not fail case by
// case.
void require_temporary_folders();

// Removes this user's folders that nobody holds any more, for kMostCleaning at most; how many are gone.
int remove_left_folders();

}  // namespace syslab
