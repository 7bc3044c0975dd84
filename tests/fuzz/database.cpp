// A file that is given as --db.
#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "store/options.hpp"
#include "store/store.hpp"
#include "tests/fuzz/ascending_memory.hpp"
#include "tests/fuzz/patched.hpp"

namespace {

using syslab::fuzz::AscendingMemory;

// SQLite's blocks are small and many: more than half of the time of an input went into the sanitizer's memory for them.
// Each has its size in front, wherever it is from.
void* sqlite_take(int bytes) {
  char* block = static_cast<char*>(AscendingMemory::take(static_cast<std::size_t>(bytes) + 16));
  if (block == nullptr) block = static_cast<char*>(std::malloc(static_cast<std::size_t>(bytes) + 16));
  if (block == nullptr) return nullptr;
  std::memcpy(block, &bytes, sizeof bytes);
  return block + 16;
}
void sqlite_give(void* block) {
  if (block == nullptr) return;
  char* const whole = static_cast<char*>(block) - 16;
  if (!AscendingMemory::give(whole)) std::free(whole);
}
int sqlite_size(void* block) {
  int bytes = 0;
  if (block != nullptr) std::memcpy(&bytes, static_cast<char*>(block) - 16, sizeof bytes);
  return bytes;
}
void* sqlite_take_again(void* block, int bytes) {
  void* const more = sqlite_take(bytes);
  if (more == nullptr) return nullptr;
  if (block != nullptr) std::memcpy(more, block, static_cast<std::size_t>(std::min(bytes, sqlite_size(block))));
  sqlite_give(block);
  return more;
}
int sqlite_rounded(int bytes) { return (bytes + 7) / 8 * 8; }

// Before the first use of SQLite, which refuses it later.
const bool kConfigured = [] {
  sqlite3_mem_methods methods{sqlite_take,  sqlite_give,    sqlite_take_again,
                              sqlite_size,  sqlite_rounded, [](void*) { return SQLITE_OK; },
                              [](void*) {}, nullptr};
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK;
}();

void remove_beside(const std::filesystem::path& path) {
  for (const char* beside : {"-wal", "-shm", "-journal"}) unlink((path.string() + beside).c_str());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syslab;
  if (!kConfigured) std::abort();
  const AscendingMemory memory;
  static const std::string good = fuzz::made_by([](const std::filesystem::path& path) {
    store::OpenOptions options = store::default_options();
    options.now = [] { return std::string("2026-01-01T00:00:00.000Z"); };  // the same file in every process
    { store::Store::open(path, store::Mode::create, std::move(options)); }
    remove_beside(path);
  });
  const fuzz::InputFile file(fuzz::patched(good, data, size), ".db");
  fuzz::read_or_refuse([&] {
    const store::Store store = store::Store::open(file.path(), store::Mode::read_only);
    store.query("SELECT count(*) FROM attempt");
  });
  remove_beside(file.path());
  return 0;
}
