// SQLite's memory from elsewhere, for tests.
#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace syslab::store {

// Memory::take(bytes) gives a block, or null where it has none, for which malloc() stands in; Memory::give(block) says
// whether the block was its own. Each block has its size in front, wherever it is from.
template <typename Memory>
class SqliteMemory {
 public:
  static void* take(int bytes) {
    const std::size_t whole = static_cast<std::size_t>(bytes) + kFront;
    void* block = Memory::take(whole);
    if (block == nullptr) block = std::malloc(whole);
    if (block == nullptr) return nullptr;
    std::memcpy(block, &bytes, sizeof bytes);
    return static_cast<char*>(block) + kFront;
  }
  static void give(void* block) {
    if (block == nullptr) return;
    char* const whole = static_cast<char*>(block) - kFront;
    if (!Memory::give(whole)) std::free(whole);
  }
  static int size(void* block) {
    int bytes = 0;
    if (block != nullptr) std::memcpy(&bytes, static_cast<char*>(block) - kFront, sizeof bytes);
    return bytes;
  }
  static void* take_again(void* block, int bytes) {
    void* const more = take(bytes);
    if (more == nullptr) return nullptr;
    if (block != nullptr) std::memcpy(more, block, static_cast<std::size_t>(std::min(bytes, size(block))));
    give(block);
    return more;
  }
  static int rounded(int bytes) { return (bytes + 7) / 8 * 8; }

 private:
  static constexpr std::size_t kFront = 16;
};

template <typename Memory>
bool take_sqlite_memory_from() {
  using Taken = SqliteMemory<Memory>;
  sqlite3_mem_methods methods{Taken::take,  Taken::give,    Taken::take_again,
                              Taken::size,  Taken::rounded, [](void*) { return SQLITE_OK; },
                              [](void*) {}, nullptr};
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK;
}

}  // namespace syslab::store
