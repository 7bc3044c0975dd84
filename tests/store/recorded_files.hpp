// A file layer for SQLite that remembers the order of all that was written, so that a test can make the files as they
// would be after a power cut at any moment; and that fails when told, as a bad or full disk does.
//
//   RecordedFiles files;                        // every connection opened while it lives goes through it
//   …                                           // write
//   const FileHistory history = files.history();
//   history.leave(folder, at, Unsynced::none, seed);
//
// What a disk promises: bytes written before a sync are there when it returns. Of those written since, each sector of
// 512 bytes is there or not. A file that was made or removed is so for certain once its folder is synced, which SQLite
// does with the first sync of a new log or journal, or when it removes one durably. A sync that fails drops what it
// should have brought to the disk, as Linux does: a later one that succeeds does not bring it either.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct sqlite3_vfs;

namespace syslab::store::test {

struct FileEvent {
  enum class Kind { found, made, written, cut_to, synced, sync_failed, removed, folder_synced } kind;
  std::string file;         // its name in the folder
  std::int64_t offset = 0;  // for cut_to: the length
  std::string bytes;
};

// What of the unsynced writes a power cut leaves.
enum class Unsynced { none, all, first_ones, some_sectors };

class FileHistory {
 public:
  std::vector<FileEvent> events;
  // The files after the events [0, at), in `folder`, which is emptied first.
  void leave(const std::filesystem::path& folder, std::size_t at, Unsynced kept, unsigned seed) const;
};

enum class DiskFault { none, write, sync, full };

class RecordedFiles {
 public:
  RecordedFiles();
  RecordedFiles(const RecordedFiles&) = delete;
  RecordedFiles& operator=(const RecordedFiles&) = delete;
  ~RecordedFiles() = default;

  const FileHistory& history() const { return history_; }
  std::size_t now() const { return history_.events.size(); }

  // From the n-th change (write, cut or sync) from now on, counted from 0, so many fail. A full disk fails writes
  // alone.
  void fail_at(int nth, DiskFault fault, int times);
  void fail_no_more() { times_ = 0; }
  int changes() const { return changes_; }  // since fail_at()

  // Of the functions that SQLite calls: the code to fail with, or 0.
  int meets(bool is_write);
  void add(FileEvent event) { history_.events.push_back(std::move(event)); }

 private:
  struct Unregister {
    void operator()(sqlite3_vfs* layer) const noexcept;
  };
  sqlite3_vfs* below_;
  std::unique_ptr<sqlite3_vfs, Unregister> layer_;
  FileHistory history_;
  int nth_ = 0, times_ = 0, changes_ = 0;
  DiskFault fault_ = DiskFault::none;
};

}  // namespace syslab::store::test
