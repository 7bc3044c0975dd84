#include "store/file_header.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/error.hpp"
#include "core/files/user_file.hpp"
#include "core/process/process.hpp"
#include "store/damaged.hpp"

namespace syslab::store {
namespace {

constexpr std::size_t kHeaderBytes = 100;
using Header = std::array<std::uint8_t, kHeaderBytes>;

std::uint32_t big_endian(const Header& header, std::size_t offset, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = (value << 8) | header[offset + static_cast<std::size_t>(i)];
  return value;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& found,
                         const std::string& advice = "another file") {
  throw Error(ErrorKind::store,
              fmt::format("database '{}': {}; it was left as it is\ntry: {}", path.string(), found, advice));
}

// A journal of a transaction in several databases ends with the name of its super-journal, the length and checksum of
// that name, and these bytes (sqlite.org/fileformat2.html, 3, and readSuperJournal() in SQLite's pager.c).
bool names_super_journal(int journal, std::uint64_t size) {
  static constexpr std::string_view kMagic{"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8};
  std::array<char, kMagic.size()> end{};
  return size >= end.size() &&
         ::pread(journal, end.data(), end.size(), static_cast<off_t>(size - end.size())) ==
             static_cast<ssize_t>(end.size()) &&
         std::string_view(end.data(), end.size()) == kMagic;
}

// SQLite would delete the log of a file that is empty or missing, and the rows in it.
void refuse_lost_rows(const std::filesystem::path& path, const char* state) {
  const std::string log = path.string() + "-wal";
  std::error_code none;
  const std::uintmax_t bytes = std::filesystem::file_size(log, none);
  if (none || bytes == 0) return;
  throw DamagedDatabase(
      path, fmt::format("it is {}, but its log '{}' holds {} bytes", state, log, bytes),
      fmt::format("put the database that this log belongs to back; without it, move '{}' away or name another file",
                  log));
}

// A commit or a checkpoint may be half done, by a writer at work or by one that died: SQLite will finish or undo it.
bool has_journal_or_wal(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path.string() + "-journal", ignored) ||
         std::filesystem::exists(path.string() + "-wal", ignored);
}

}  // namespace

void require_known_version(const std::filesystem::path& path, std::int64_t found, int newest) {
  if (found > newest) {
    refuse(path, fmt::format("its schema has version {}, newer than the version {} that this syslab knows: use a newer "
                             "syslab",
                             found, newest));
  }
  if (found != 0 && found < kFirstVersion) {
    const std::string reads = newest == kFirstVersion ? fmt::format("version {}", newest)
                                                      : fmt::format("versions {} to {}", kFirstVersion, newest);
    refuse(path, fmt::format("its schema has version {}, from before the first release; this syslab reads {}: name "
                             "another file with --db, and run again what you need",
                             found, reads));
  }
}

void refuse_harmful_companions(const std::filesystem::path& file, const std::filesystem::path& shown_as) {
  for (const char* suffix : {"-journal", "-wal", "-shm"}) {
    const std::string companion = file.string() + suffix;
    const std::string advice = fmt::format("remove '{}', or get the database anew", companion);
    struct stat status {};
    if (::lstat(companion.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode)) {
      if (std::string_view(suffix) != "-journal") continue;
      // O_NONBLOCK and fstat: something else may have the name by now.
      const FileDescriptor journal(::open(companion.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
      if (!journal || ::fstat(journal.get(), &status) != 0) continue;  // nor can SQLite read it
      if (S_ISREG(status.st_mode)) {
        if (!names_super_journal(journal.get(), static_cast<std::uint64_t>(status.st_size))) continue;
        refuse(shown_as,
               fmt::format("its journal '{}' names a super-journal, a file that SQLite would delete. syslab writes no "
                           "such journal",
                           companion),
               advice);
      }
    }
    refuse(shown_as, fmt::format("'{}' next to it is not a plain file", companion), advice);
  }
}

FileState inspect_file(const std::filesystem::path& path, int newest_version) {
  refuse_harmful_companions(behind_links(path), path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // opening a FIFO must not block
  if (fd < 0) {
    const int refused = errno;
    if (refused != ENOENT)
      throw_errno(ErrorKind::store, fmt::format("open database '{}'", path.string()), refused, "open");
    refuse_lost_rows(path, "missing");
    return FileState::absent;
  }
  Header header{};
  struct stat status {};
  const bool known = ::fstat(fd, &status) == 0;
  const bool plain = known && S_ISREG(status.st_mode);
  const ssize_t got = plain ? ::pread(fd, header.data(), header.size(), 0) : 0;
  const int error = errno;
  ::close(fd);
  if (known && S_ISDIR(status.st_mode)) refuse(path, "it is a folder");
  if (known && !plain) refuse(path, S_ISFIFO(status.st_mode) ? "it is a FIFO" : "it is a device");
  if (!known || got < 0) {
    throw_errno(ErrorKind::store, fmt::format("read database '{}'", path.string()), error, "read");
  }
  if (got == 0) {
    refuse_lost_rows(path, "empty");
    return FileState::absent;
  }

  static constexpr std::string_view kMagic{"SQLite format 3\0", 16};
  if (static_cast<std::size_t>(got) < kHeaderBytes || std::memcmp(header.data(), kMagic.data(), kMagic.size()) != 0) {
    throw DamagedDatabase(path, "it is not an SQLite database", "another file, or another copy of this one");
  }
  const std::uint32_t id = big_endian(header, 68, 4);
  if (id != static_cast<std::uint32_t>(kApplicationId)) {
    refuse(path, id == 0 ? std::string("it is an SQLite database of another program")
                         : fmt::format("it is an SQLite database of another program (application id {:#010x})", id));
  }
  const auto version = static_cast<std::int32_t>(big_endian(header, 60, 4));
  require_known_version(path, version, newest_version);

  const std::uint32_t stored_page = big_endian(header, 16, 2);
  const std::uint64_t page = stored_page == 1 ? 65536 : stored_page;
  // Bytes 28 and 92 tell the file's size in pages, and for which change counter (24) that was written.
  const std::uint64_t pages = big_endian(header, 24, 4) == big_endian(header, 92, 4) ? big_endian(header, 28, 4) : 0;
  if (page < 512 || (page & (page - 1)) != 0) throw DamagedDatabase(path, "it is damaged: its page size is impossible");
  if (static_cast<std::uint64_t>(status.st_size) < page * pages && !has_journal_or_wal(path)) {
    throw DamagedDatabase(path,
                          fmt::format("it is damaged: cut short to {} of {} bytes", status.st_size, page * pages));
  }
  return FileState::ours;
}

}  // namespace syslab::store
