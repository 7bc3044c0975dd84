// A folder in TMPDIR (or /tmp) for as long as an object lives. Its process holds a lock on it, so that what a killed
// one left can be told from what is in use, whatever process numbers say: the system lets go of a lock with its
// process.
#pragma once

#include <string>

#include "core/process.hpp"

namespace syslab {

class TemporaryFolder {
 public:
  // Enterable by this user alone. Error(internal) if it cannot be made.
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();  // with all that is in it

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileDescriptor lock_;
};

// Removes this user's folders that nobody holds any more; how many they were.
int remove_left_folders();

}  // namespace syslab
