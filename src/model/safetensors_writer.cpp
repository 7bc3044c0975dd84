#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "core/error.hpp"
#include "core/json_text.hpp"
#include "model/safetensors.hpp"

namespace syslab::model {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::size_t kDataAlignment = 8;  // of the first tensor in the file: what maps it may read it in place

// Where the file that `path` names lies, through a link if it is one.
fs::path target_of(const fs::path& path) {
  std::error_code failed;
  const fs::path target = fs::is_symlink(path, failed) ? fs::weakly_canonical(path, failed) : path;
  if (fs::exists(target, failed) && !fs::is_regular_file(target, failed)) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot write '{}': it is no plain file; choose another name", path.string()));
  }
  return target;
}

std::string header_of(std::vector<FileTensor>& tensors, const FileMetadata& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t end = 0;
  for (FileTensor& tensor : tensors) {
    if (tensor.name == "__metadata__" || header.contains(tensor.name)) {
      throw Error(ErrorKind::internal, fmt::format("a tensor named '{}' cannot be written, or not twice", tensor.name));
    }
    tensor.offset = end;
    end += tensor.bytes();
    header[tensor.name] = {
        {"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {tensor.offset, end}}};
  }
  std::string text = repaired_json_text(header);  // JSON is UTF-8
  text.append((kDataAlignment - text.size() % kDataAlignment) % kDataAlignment, ' ');
  return text;
}

std::string temporary_of(const fs::path& path, pid_t writer) { return fmt::format("{}.{}.tmp", path.string(), writer); }

// Unlocked, of a process that there is not: nobody writes it any more. Either alone would not do: a writer on another
// host has a process id of that host, one that has only begun no lock yet.
bool is_abandoned(const fs::path& temporary, pid_t writer) {
  if (::kill(writer, 0) == 0 || errno != ESRCH) return false;
  const int descriptor = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  const bool is_free = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  ::close(descriptor);
  return is_free;
}

// The process that a temporary file of `name` is named after; 0 where it is none.
pid_t writer_of(const std::string& temporary, const std::string& name) {
  const std::string before = name + ".", after = ".tmp";
  if (temporary.size() <= before.size() + after.size()) return 0;
  if (!temporary.starts_with(before) || !temporary.ends_with(after)) return 0;
  const char *first = temporary.data() + before.size(), *last = temporary.data() + temporary.size() - after.size();
  pid_t writer = 0;
  const auto [rest, wrong] = std::from_chars(first, last, writer);
  return wrong == std::errc{} && rest == last && writer > 0 ? writer : 0;
}

// What writers of this file left that were killed. Where it cannot be removed the file is written all the same.
void remove_abandoned(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    const pid_t writer = writer_of(it->path().filename().string(), path.filename().string());
    std::error_code ignored;
    if (writer > 0 && is_abandoned(it->path(), writer)) fs::remove(it->path(), ignored);
  }
}

// A renamed file is on the disk when its folder is. Where a folder cannot be synced, nothing better can be done.
void sync_folder_of(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(fs::path path, std::vector<FileTensor> tensors, const FileMetadata& metadata)
    : path_(target_of(path)) {
  const std::string header = header_of(tensors, metadata);
  for (const FileTensor& tensor : tensors) data_bytes_ += tensor.bytes();
  remove_abandoned(path_);
  temporary_ = temporary_of(path_, ::getpid());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) refuse(errno, "open");
  static_cast<void>(::flock(descriptor_, LOCK_EX | LOCK_NB));  // says that it is written, as long as this process lives
  try {
    const std::uint64_t length = header.size();
    const std::uint64_t total = sizeof length + length + data_bytes_;
    // A disk too full says so now and not after an hour. File systems that cannot reserve are none the worse.
    if (::fallocate(descriptor_, 0, 0, static_cast<off_t>(total)) != 0 && errno == ENOSPC) refuse(errno, "fallocate");
    put(std::as_bytes(std::span(&length, 1)));
    put(std::as_bytes(std::span(header)));
  } catch (...) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (descriptor_ < 0 || bytes.size() > data_bytes_ - written_) {
    throw Error(ErrorKind::internal,
                fmt::format("more bytes for '{}' than its {} of tensors", path_.string(), data_bytes_));
  }
  put(bytes);
  written_ += bytes.size();
}

void SafetensorsWriter::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse(errno, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void SafetensorsWriter::finish() {
  if (descriptor_ < 0 || written_ != data_bytes_) {
    throw Error(ErrorKind::internal,
                fmt::format("'{}' was finished with {} of {} bytes of tensors", path_.string(), written_, data_bytes_));
  }
  if (::fsync(descriptor_) != 0) refuse(errno, "fsync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) refuse(errno, "rename");
  ::close(descriptor_);
  descriptor_ = -1;
  sync_folder_of(path_);
}

void SafetensorsWriter::refuse(int errno_value, const char* call) const {
  throw Error(
      ErrorKind::usage,
      fmt::format("cannot write '{}': {}; choose another place or make room (what was there before is untouched)",
                  path_.string(), std::error_code(errno_value, std::generic_category()).message()),
      call);
}

}  // namespace syslab::model
