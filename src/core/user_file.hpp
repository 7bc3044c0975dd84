// Files that a user names, to be read or to be written. A FIFO would make us wait and a device never ends, so only
// plain files are read; what is written takes its place whole, and never that of a database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace syslab {

// Nothing for a plain file, and where there is none; else what it is: "a FIFO", "a folder", "a device".
std::string special_kind(const std::filesystem::path& file);

// The whole of a plain file. Error(usage) where it is none, cannot be read, or has more than `at_most` bytes.
std::string read_user_file(const std::filesystem::path& file, std::uint64_t at_most);

// A file that is written whole under a name of its own beside its place, and takes its place by place(); removed if it
// never does. Through a symbolic link the file that it names is replaced.
class FileInMaking {
 public:
  // Error(usage) for a FIFO, a device, a folder, an SQLite database, or one of `kept` (by inode, too: another link to
  // it), before anything is written.
  FileInMaking(std::filesystem::path file, std::string_view bytes, const std::vector<std::filesystem::path>& kept = {});
  FileInMaking(FileInMaking&& other) noexcept;
  FileInMaking& operator=(FileInMaking&&) = delete;
  ~FileInMaking();

  void place();

 private:
  std::filesystem::path file_, target_;  // as named, and where it lies
  std::filesystem::path draft_;          // empty: there is nothing of ours to remove
};

}  // namespace syslab
