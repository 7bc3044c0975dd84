// A look at a database file's first bytes, without SQLite, so that a file which is not ours is refused before anything
// could touch it (opening alone may replay a journal or fold a write-ahead log into the file).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace syslab::store {

inline constexpr std::int32_t kApplicationId = 0x53594C42;  // "SYLB", at byte 68 of every file of ours

// The schema's first version that is released. Nothing brings up a file of a version before it.
inline constexpr int kFirstVersion = 7;

enum class FileState {
  absent,  // or empty, as a writer that died at its very start leaves it
  ours,
};

// Runs `look`, which may open and close any file. POSIX locks belong to a table of files, and closing a file lets go of
// all that its table holds. So a thread with a table of its own looks: it sees this process's locks, and cannot cost it
// any. Where the system makes no such table, nobody looks.
void without_cost_of_locks(const std::function<void()>& look);

// Error(store) if a file that SQLite keeps next to `file` (its links are followed) is not a plain file, if its journal
// or the index of its log begins as no such file does (SQLite would delete it), or if its journal names a
// super-journal: SQLite would play the journal back and then delete whatever file it names. Ours names none, because no
// transaction of ours writes to two files.
void refuse_harmful_companions(const std::filesystem::path& file, const std::filesystem::path& shown_as);

// Error(store) as above. DamagedDatabase when the file is not a database, is cut short, or is empty or missing next to
// a log or a journal with rows. Error(store) when it belongs to another program, or as require_known_version() has it.
// Source of the layout: sqlite.org/fileformat2.html, 1.3.
FileState inspect_file(const std::filesystem::path& path, int newest_version);

// Error(store) unless the schema's version is 0, of a file without one, or from kFirstVersion to `newest`.
void require_known_version(const std::filesystem::path& path, std::int64_t found, int newest);

}  // namespace syslab::store
