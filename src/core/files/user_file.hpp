// Files that a user names, to be read or to be written. A FIFO would block and a device never ends, so only plain files
// are read. A written file replaces its target atomically, and never replaces a database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace syslab {

// The kind of a failure to write where a user said. `internal` if the disk is full, read-only or failing (ENOSPC,
// EDQUOT, EROFS, EIO); `otherwise` if another name or other permissions help.
ErrorKind kind_of_write_error(int errno_value, ErrorKind otherwise = ErrorKind::usage);

// Empty for a plain or missing file; otherwise its kind: "a FIFO", "a folder", "a device".
std::string special_kind(const std::filesystem::path& file);

// Links followed, as far as they lead anywhere: a link to a file that is not there yet names it.
std::filesystem::path behind_links(const std::filesystem::path& file);

// The contents of a plain file. Error(usage) if it is not one, cannot be read, or has more than `at_most` bytes.
std::string read_user_file(const std::filesystem::path& file, std::uint64_t at_most);

// Gives a draft, made with mode 0600, the mode of the file that it will replace, if there is one. What is new is
// private: it may hold what its author read from a private database.
void keep_mode(int draft, const std::filesystem::path& target);

// A file written under a temporary name in the target's folder; place() renames it to the target, and it is removed if
// place() is never called. Through a symbolic link, the file that it points to is replaced.
class FileInMaking {
 public:
  // Error(usage) for a FIFO, a device, a folder, an SQLite database, or one of `kept` (by inode, too: another link to
  // it), before anything is written. Error(internal) if the disk is full, read-only or failing.
  FileInMaking(std::filesystem::path file, std::string_view bytes, const std::vector<std::filesystem::path>& kept = {});
  FileInMaking(FileInMaking&& other) noexcept;
  FileInMaking& operator=(FileInMaking&&) = delete;
  ~FileInMaking();

  void place();

 private:
  std::filesystem::path file_, target_;  // as named, and resolved
  std::filesystem::path draft_;          // empty: nothing to remove
};

}  // namespace syslab
