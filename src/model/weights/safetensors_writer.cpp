#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/text/json_text.hpp"
#include "model/weights/safetensors.hpp"
#include "model/weights/safetensors_checksums.hpp"

namespace syslab::model {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

constexpr std::size_t kDataAlignment =
    8;  // of the first tensor in the file, so that a reader that maps it can use it in place

// The real place of the file that `path` names, following a link.
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
  FileMetadata with_checksums = empty_checksums(tensors.size());
  for (const auto& [key, value] : metadata) {
    if (is_checksum_key(key)) {
      throw Error(ErrorKind::internal, fmt::format("the metadata '{}' is the writer's own", key));
    }
    with_checksums[key] = value;
  }
  nlohmann::json header = nlohmann::json::object();
  header["__metadata__"] = with_checksums;
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

// A file that is unlocked and names a process that does not exist is abandoned. Both are needed: a writer on another
// host has a process id of that host, and one that has just begun has no lock yet.
bool is_abandoned(const fs::path& temporary, pid_t writer) {
  if (::kill(writer, 0) == 0 || errno != ESRCH) return false;
  const int descriptor = ::open(temporary.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  const bool is_free = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  ::close(descriptor);
  return is_free;
}

// The process id in the name of a temporary file of `name`; 0 if there is none.
pid_t writer_of(const std::string& temporary, const std::string& name) {
  const std::string before = name + ".", after = ".tmp";
  if (temporary.size() <= before.size() + after.size()) return 0;
  if (!temporary.starts_with(before) || !temporary.ends_with(after)) return 0;
  const char *first = temporary.data() + before.size(), *last = temporary.data() + temporary.size() - after.size();
  pid_t writer = 0;
  const auto [rest, wrong] = std::from_chars(first, last, writer);
  return wrong == std::errc{} && rest == last && writer > 0 ? writer : 0;
}

// Removes the temporary files of killed writers of this file. If one cannot be removed, the file is written all the
// same.
void remove_abandoned(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    const pid_t writer = writer_of(it->path().filename().string(), path.filename().string());
    std::error_code ignored;
    if (writer > 0 && is_abandoned(it->path(), writer)) fs::remove(it->path(), ignored);
  }
}

// A renamed file is on disk once its folder is synced. If a folder cannot be synced, there is nothing better to do.
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
  header_ = header_of(tensors, metadata);
  for (const FileTensor& tensor : tensors) ends_.push_back(tensor.offset + tensor.bytes());
  remove_abandoned(path_);
  temporary_ = temporary_of(path_, ::getpid());
  // Weights remember what they have learned, so a new file is private. Whatever has this name is not written through.
  ::unlink(temporary_.c_str());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor_ < 0) refuse(errno, "open");
  keep_mode(descriptor_, path_);
  static_cast<void>(::flock(descriptor_, LOCK_EX | LOCK_NB));  // says that it is written, as long as this process lives
  try {
    const std::uint64_t length = header_.size();
    const std::uint64_t total = sizeof length + length + data_bytes();
    // A disk that is too full shows now and not after an hour. On file systems that cannot reserve space this does
    // nothing.
    if (::fallocate(descriptor_, 0, 0, static_cast<off_t>(total)) != 0 && errno == ENOSPC) refuse(errno, "fallocate");
    put(std::as_bytes(std::span(&length, 1)));
    put(std::as_bytes(std::span(header_)));
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
  if (descriptor_ < 0 || bytes.size() > data_bytes() - written_) {
    throw Error(ErrorKind::internal,
                fmt::format("more bytes for '{}' than its {} of tensors", path_.string(), data_bytes()));
  }
  put(bytes);
  add_to_checksums(bytes);
}

void SafetensorsWriter::add_to_checksums(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    end_full_tensors();
    const std::uint64_t left = ends_[checksums_.size()] - written_;
    const auto of_tensor = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left)));
    checksum_.update(of_tensor);
    written_ += of_tensor.size();
    bytes = bytes.subspan(of_tensor.size());
  }
}

void SafetensorsWriter::end_full_tensors() {
  while (checksums_.size() < ends_.size() && written_ == ends_[checksums_.size()]) {
    checksums_.push_back(std::exchange(checksum_, Checksum()).hex());
  }
}

void SafetensorsWriter::put_header_with_checksums() {
  end_full_tensors();
  fill_checksums(header_, checksums_);
  if (::lseek(descriptor_, sizeof(std::uint64_t), SEEK_SET) < 0) refuse(errno, "lseek");
  put(std::as_bytes(std::span(header_)));
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
  if (descriptor_ < 0 || written_ != data_bytes()) {
    throw Error(ErrorKind::internal, fmt::format("'{}' was finished with {} of {} bytes of tensors", path_.string(),
                                                 written_, data_bytes()));
  }
  put_header_with_checksums();
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
