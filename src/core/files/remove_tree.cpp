#include "core/files/remove_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/process/process.hpp"

namespace syslab {
namespace {

struct Close {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// Made readable and writable first. Not by its name, which may mean something else by then.
FileDescriptor open_folder(int at, const std::string& name) {
  const FileDescriptor place(::openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!place) return {};
  const std::string self = "/proc/self/fd/" + std::to_string(place.get());
  struct stat status {};
  if (::fstat(place.get(), &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU) ::chmod(self.c_str(), S_IRWXU);
  return FileDescriptor(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::vector<std::string> names_in(const FileDescriptor& folder) {
  std::vector<std::string> names;
  const int copy = ::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, Close> list(copy < 0 ? nullptr : ::fdopendir(copy));
  if (list == nullptr) return names;
  ::rewinddir(list.get());
  while (const dirent* const entry = ::readdir(list.get())) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

class Remover {
 public:
  Remover(FileDescriptor top, std::chrono::milliseconds most) : top_(std::move(top)) {
    if (most.count() > 0) until_ = Clock::now() + most;
  }

  // Whatever lies directly in the top folder is emptied: its files are removed, and its folders become others of the
  // top, until there are none.
  void empty() {
    for (std::vector<std::string> names = names_in(top_); !names.empty(); names = names_in(top_)) {
      const std::size_t before = removed_;
      for (const std::string& name : names) {
        if (is_late()) return;
        take(name);
      }
      if (removed_ == before) return;  // what is left does not let itself be removed
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_late() const { return until_ && Clock::now() >= *until_; }

  void take(const std::string& name) {
    if (unlink(top_.get(), name)) return;
    {
      const FileDescriptor folder = open_folder(top_.get(), name);
      if (!folder) return;
      for (const std::string& inner : names_in(folder)) {
        if (is_late()) return;
        if (unlink(folder.get(), inner)) continue;
        // A folder that changes its place is written to: the name of the one above it stands in it.
        static_cast<void>(open_folder(folder.get(), inner));
        const std::string here = ".removed-" + std::to_string(++moved_);
        if (::renameat(folder.get(), inner.c_str(), top_.get(), here.c_str()) == 0) ++removed_;
      }
    }
    if (::unlinkat(top_.get(), name.c_str(), AT_REMOVEDIR) == 0) ++removed_;
  }

  // True if it is gone, or cannot be; false for a folder.
  bool unlink(int at, const std::string& name) {
    if (::unlinkat(at, name.c_str(), 0) == 0) {
      ++removed_;
      return true;
    }
    return errno != EISDIR && errno != EPERM;
  }

  FileDescriptor top_;
  std::size_t removed_ = 0;
  std::uint64_t moved_ = 0;
  std::optional<Clock::time_point> until_;
};

}  // namespace

bool remove_tree(const std::string& path, std::chrono::milliseconds most) noexcept {
  try {
    if (FileDescriptor top = open_folder(AT_FDCWD, path)) Remover(std::move(top), most).empty();
  } catch (...) {  // no memory for the names: what is left is told below
  }
  return ::rmdir(path.c_str()) == 0 || errno == ENOENT;
}

}  // namespace syslab
