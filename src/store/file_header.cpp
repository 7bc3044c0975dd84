#include "store/file_header.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <thread>

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

// A file next to a database. Its first bytes are 0 as far as it has none.
struct Companion {
  std::string path;
  std::uintmax_t bytes = 0;
  std::array<std::uint8_t, 20> begin{};

  // Whether it begins as SQLite's file does, or with the zeros that stand there until SQLite has synced the rest. A
  // writer that died may have left less than that.
  bool begins(std::span<const std::uint8_t> known) const {
    const auto own = std::span(begin).first(std::min<std::size_t>(bytes, known.size()));
    return std::ranges::all_of(own, [](std::uint8_t byte) { return byte == 0; }) ||
           std::ranges::equal(own, known.first(own.size()));
  }
};

// Nothing where there is none, or one without a byte.
std::optional<Companion> companion_of(const std::filesystem::path& file, const char* suffix) {
  Companion found{.path = file.string() + suffix};
  const FileDescriptor opened(::open(found.path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return {};
  found.bytes = static_cast<std::uintmax_t>(status.st_size);
  if (::pread(opened.get(), found.begin.data(), found.begin.size(), 0) < 0) return {};  // nor can SQLite read it
  return found;
}

// SQLite takes any file of such a name for its own: it deletes it, or writes over it. The magic numbers: fileformat2,
// 3, and walformat, 2.1 (sqlite.org); the index of a log has the byte order of its machine.
void refuse_foreign_companions(const std::filesystem::path& file, const std::filesystem::path& shown_as) {
  static constexpr std::array<std::uint8_t, 8> kJournal{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  static constexpr auto kIndex = std::bit_cast<std::array<std::uint8_t, 4>>(std::uint32_t{3007000});
  const auto refuse_unless = [&](const std::optional<Companion>& there, std::span<const std::uint8_t> known) {
    if (!there || there->begins(known)) return;
    refuse(shown_as,
           fmt::format("'{}' next to it is not a file of SQLite, which would delete its {} bytes", there->path,
                       there->bytes),
           fmt::format("move '{}' away, or name another file", there->path));
  };
  refuse_unless(companion_of(file, "-journal"), kJournal);
  std::error_code none;
  if (!std::filesystem::exists(file.string() + "-shm", none)) return;
  std::optional<Companion> index;  // SQLite has its locks on it
  without_cost_of_locks([&] { index = companion_of(file, "-shm"); });
  refuse_unless(index, kIndex);
}

// SQLite would delete the log or the journal of a file that is empty or missing, and the rows in it. A journal that
// began with an empty file (its length, in pages, are the bytes from 16) has none: a writer died at its very start.
void refuse_lost_rows(const std::filesystem::path& path, const char* state) {
  const std::filesystem::path file = behind_links(path);
  const auto refuse_with_rows = [&](const Companion& there, const char* kind) {
    throw DamagedDatabase(
        path, fmt::format("it is {}, but its {} '{}' holds {} bytes", state, kind, there.path, there.bytes),
        fmt::format("put the database that this {} belongs to back; without it, move '{}' away or name another file",
                    kind, there.path));
  };
  if (const auto log = companion_of(file, "-wal")) refuse_with_rows(*log, "log");
  const auto journal = companion_of(file, "-journal");
  if (journal && std::ranges::any_of(std::span(journal->begin).subspan<16, 4>(), [](auto byte) { return byte != 0; })) {
    refuse_with_rows(*journal, "journal");
  }
}

// A commit or a checkpoint may be half done, by a writer at work or by one that died: SQLite will finish or undo it.
bool has_journal_or_wal(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path.string() + "-journal", ignored) ||
         std::filesystem::exists(path.string() + "-wal", ignored);
}

}  // namespace

void without_cost_of_locks(const std::function<void()>& look) {
  std::thread([&] {
    if (::unshare(CLONE_FILES) == 0) look();
  }).join();
}

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
  refuse_foreign_companions(file, shown_as);
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
