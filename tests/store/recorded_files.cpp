#include "tests/store/recorded_files.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <utility>

#include "store/connection.hpp"
#include "tests/store/fixture.hpp"

namespace syslab::store::test {
namespace {

using Kind = FileEvent::Kind;

constexpr std::size_t kSectorBytes = 512;

// --- what SQLite calls ----------------------------------------------------------------------------------------------

struct Layer {
  RecordedFiles* files;
  sqlite3_vfs* below;
};

// SQLite allocates it, with room behind it for the file of the layer below.
struct File {
  sqlite3_file base;
  RecordedFiles* files;
  std::string* name;      // null: a temporary file, of no interest
  bool syncs_the_folder;  // with its next sync

  sqlite3_file* below() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  bool recorded() const { return name != nullptr; }
};

File& of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
Layer& of(sqlite3_vfs* layer) { return *static_cast<Layer*>(layer->pAppData); }

// Calls the method of the layer below.
template <auto Method, typename... Arguments>
int pass_on(sqlite3_file* file, Arguments... arguments) {
  sqlite3_file* const below = of(file).below();
  return (below->pMethods->*Method)(below, arguments...);
}

int close_file(sqlite3_file* file) {
  delete of(file).name;
  return pass_on<&sqlite3_io_methods::xClose>(file);
}

int write_file(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  File& it = of(file);
  if (it.recorded()) {
    if (const int code = it.files->meets(/*is_write=*/true)) return code;
  }
  const int code = pass_on<&sqlite3_io_methods::xWrite>(file, bytes, count, offset);
  if (it.recorded() && code == SQLITE_OK) {
    it.files->add({Kind::written, *it.name, offset,
                   std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(count))});
  }
  return code;
}

int cut_file(sqlite3_file* file, sqlite3_int64 length) {
  File& it = of(file);
  if (it.recorded()) {
    if (const int code = it.files->meets(/*is_write=*/false)) return code;
  }
  const int code = pass_on<&sqlite3_io_methods::xTruncate>(file, length);
  if (it.recorded() && code == SQLITE_OK) it.files->add({Kind::cut_to, *it.name, length, {}});
  return code;
}

int sync_file(sqlite3_file* file, int flags) {
  File& it = of(file);
  if (!it.recorded()) return pass_on<&sqlite3_io_methods::xSync>(file, flags);
  if (const int code = it.files->meets(/*is_write=*/false)) {
    it.files->add({Kind::sync_failed, *it.name, 0, {}});
    return code;
  }
  it.files->add({Kind::synced, *it.name, 0, {}});
  if (std::exchange(it.syncs_the_folder, false)) it.files->add({Kind::folder_synced, {}, 0, {}});
  return SQLITE_OK;  // the test's own folder need not survive a real power cut
}

constexpr sqlite3_io_methods kMethods{
    .iVersion = 2,  // no memory maps of the database, which would not be seen
    .xClose = close_file,
    .xRead = [](sqlite3_file* file, void* to, int count,
                sqlite3_int64 at) { return pass_on<&sqlite3_io_methods::xRead>(file, to, count, at); },
    .xWrite = write_file,
    .xTruncate = cut_file,
    .xSync = sync_file,
    .xFileSize = [](sqlite3_file* file,
                    sqlite3_int64* size) { return pass_on<&sqlite3_io_methods::xFileSize>(file, size); },
    .xLock = [](sqlite3_file* file, int level) { return pass_on<&sqlite3_io_methods::xLock>(file, level); },
    .xUnlock = [](sqlite3_file* file, int level) { return pass_on<&sqlite3_io_methods::xUnlock>(file, level); },
    .xCheckReservedLock = [](sqlite3_file* file,
                             int* locked) { return pass_on<&sqlite3_io_methods::xCheckReservedLock>(file, locked); },
    .xFileControl = [](sqlite3_file* file, int what,
                       void* argument) { return pass_on<&sqlite3_io_methods::xFileControl>(file, what, argument); },
    .xSectorSize = [](sqlite3_file* file) { return pass_on<&sqlite3_io_methods::xSectorSize>(file); },
    .xDeviceCharacteristics =
        [](sqlite3_file* file) { return pass_on<&sqlite3_io_methods::xDeviceCharacteristics>(file); },
    .xShmMap = [](sqlite3_file* file, int page, int size, int extend,
                  void volatile** at) { return pass_on<&sqlite3_io_methods::xShmMap>(file, page, size, extend, at); },
    .xShmLock = [](sqlite3_file* file, int first, int count,
                   int flags) { return pass_on<&sqlite3_io_methods::xShmLock>(file, first, count, flags); },
    .xShmBarrier = [](sqlite3_file* file) { of(file).below()->pMethods->xShmBarrier(of(file).below()); },
    .xShmUnmap = [](sqlite3_file* file, int remove) { return pass_on<&sqlite3_io_methods::xShmUnmap>(file, remove); },
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open_file(sqlite3_vfs* layer, const char* name, sqlite3_file* file, int flags, int* opened) {
  const Layer& it = of(layer);
  const bool is_recorded = name != nullptr && (flags & SQLITE_OPEN_DELETEONCLOSE) == 0;
  const bool was_there = is_recorded && fs::exists(name);
  File& made = of(file);
  made = {.base = {nullptr}, .files = it.files, .name = nullptr, .syncs_the_folder = false};
  const int code = it.below->xOpen(it.below, name, made.below(), flags, opened);
  if (made.below()->pMethods == nullptr) return code;
  made.base.pMethods = &kMethods;
  if (code != SQLITE_OK || !is_recorded) return code;
  made.name = new std::string(fs::path(name).filename().string());
  if (was_there) {
    it.files->add({Kind::found, *made.name, 0, bytes_of(name)});
  } else {
    it.files->add({Kind::made, *made.name, 0, {}});
    made.syncs_the_folder = (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
  }
  return code;
}

int delete_file(sqlite3_vfs* layer, const char* name, int sync_folder) {
  const Layer& it = of(layer);
  const int code = it.below->xDelete(it.below, name, sync_folder);
  if (code != SQLITE_OK) return code;
  it.files->add({Kind::removed, fs::path(name).filename().string(), 0, {}});
  if (sync_folder != 0) it.files->add({Kind::folder_synced, {}, 0, {}});
  return code;
}

// --- what a power cut leaves ----------------------------------------------------------------------------------------

// One file of the folder. `on_disk`: what is certain.
struct State {
  std::string on_disk;
  std::vector<FileEvent> unsynced;
  bool is_entered = false;  // in the folder, for certain
  bool is_removed = false;  // and the folder not synced since
};

void write_at(std::string& content, std::size_t offset, std::string_view bytes) {
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size(), '\0');
  std::copy(bytes.begin(), bytes.end(), content.begin() + static_cast<std::ptrdiff_t>(offset));
}

void apply(std::string& content, const FileEvent& event) {
  const auto offset = static_cast<std::size_t>(event.offset);
  if (event.kind == Kind::cut_to) {
    content.resize(std::min(content.size(), offset));
  } else {
    write_at(content, offset, event.bytes);
  }
}

void apply_some_sectors(std::string& content, const FileEvent& event, std::mt19937& random) {
  if (event.kind == Kind::cut_to) {
    if (random() % 2 == 0) apply(content, event);
    return;
  }
  const auto begin = static_cast<std::size_t>(event.offset), end = begin + event.bytes.size();
  for (std::size_t at = begin; at < end;) {
    const std::size_t next = std::min((at / kSectorBytes + 1) * kSectorBytes, end);
    if (random() % 2 == 0) write_at(content, at, std::string_view(event.bytes).substr(at - begin, next - at));
    at = next;
  }
}

std::string after_cut(const State& state, Unsynced kept, std::mt19937& random) {
  std::string content = state.on_disk;
  const std::size_t first_ones = random() % (state.unsynced.size() + 1);
  for (std::size_t i = 0; i < state.unsynced.size(); ++i) {
    const FileEvent& event = state.unsynced[i];
    if (kept == Unsynced::all || (kept == Unsynced::first_ones && i < first_ones)) apply(content, event);
    if (kept == Unsynced::some_sectors) apply_some_sectors(content, event, random);
  }
  return content;
}

void follow(std::map<std::string, State>& files, const FileEvent& event) {
  State& file = files[event.file];
  switch (event.kind) {
    case Kind::found:
      if (file.on_disk.empty() && file.unsynced.empty() && !file.is_entered) {
        file = {.on_disk = event.bytes, .unsynced = {}, .is_entered = true, .is_removed = false};
      }
      break;
    case Kind::made:
      // Made again before its removal was certain: the name is there either way, the old content is not.
      file = {.on_disk = {}, .unsynced = {}, .is_entered = file.is_entered, .is_removed = false};
      break;
    case Kind::written:
    case Kind::cut_to:
      file.unsynced.push_back(event);
      break;
    case Kind::synced:
      for (const FileEvent& change : file.unsynced) apply(file.on_disk, change);
      file.unsynced.clear();
      break;
    case Kind::sync_failed:
      file.unsynced.clear();
      break;
    case Kind::removed:
      file.is_removed = true;
      break;
    case Kind::folder_synced:
      for (auto& [name, state] : files) state.is_entered = !state.is_removed;
      std::erase_if(files, [](const auto& file) { return file.second.is_removed; });
      break;
  }
}

// The first connection puts a layer over SQLite's files, which must be below ours.
sqlite3_vfs* files_of_syslab() {
  const Connection first(":memory:", Connection::Access::read_write, ":memory:");
  return sqlite3_vfs_find(nullptr);
}

}  // namespace

void FileHistory::leave(const fs::path& folder, std::size_t at, Unsynced kept, unsigned seed) const {
  std::map<std::string, State> files;
  for (std::size_t i = 0; i < at; ++i) follow(files, events[i]);
  files.erase("");  // of folder_synced
  fs::remove_all(folder);
  fs::create_directory(folder);
  std::mt19937 random(seed);
  for (const auto& [name, state] : files) {
    const bool is_there = state.is_removed ? state.is_entered && kept == Unsynced::none
                                           : state.is_entered || kept == Unsynced::all || random() % 2 == 0;
    if (is_there) std::ofstream(folder / name, std::ios::binary) << after_cut(state, kept, random);
  }
}

RecordedFiles::RecordedFiles() : below_(files_of_syslab()), layer_(new sqlite3_vfs(*below_)) {
  layer_->zName = "recorded";
  layer_->szOsFile = static_cast<int>(sizeof(File)) + below_->szOsFile;
  layer_->pAppData = new Layer{this, below_};
  layer_->xOpen = open_file;
  layer_->xDelete = delete_file;
  sqlite3_vfs_register(layer_.get(), /*makeDflt=*/1);
}

void RecordedFiles::Unregister::operator()(sqlite3_vfs* layer) const noexcept {
  sqlite3_vfs_unregister(layer);
  sqlite3_vfs_register(of(layer).below, /*makeDflt=*/1);
  delete &of(layer);
  delete layer;
}

void RecordedFiles::fail_at(int nth, DiskFault fault, int times) {
  nth_ = nth;
  fault_ = fault;
  times_ = times;
  changes_ = 0;
}

int RecordedFiles::meets(bool is_write) {
  if (fault_ == DiskFault::full && !is_write) return SQLITE_OK;
  if (changes_++ < nth_ || times_ == 0) return SQLITE_OK;
  --times_;
  if (fault_ == DiskFault::full) return SQLITE_FULL;
  return fault_ == DiskFault::sync ? SQLITE_IOERR_FSYNC : SQLITE_IOERR_WRITE;
}

}  // namespace syslab::store::test
