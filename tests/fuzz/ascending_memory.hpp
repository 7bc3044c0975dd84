// What a fuzz target allocates while one of these lives gets ascending addresses, the same in every process and after
// whatever inputs: a set of pointers, of which CLI11 has many, is then walked and searched in one order, and an input
// reaches the same edges each time. Without it the same 298 command lines reach 6,054 edges in one process and 6,068 in
// the next, so that "no new edge" never comes. It is faster than the sanitizer's own memory, too, with which it has in
// common that what was freed, and the bytes around each block, are poisoned.
//
// A block is not used again before the target's call has ended; what a call leaves behind stays allocated.
#pragma once

#include <cstddef>

namespace syslab::fuzz {

class AscendingMemory {
 public:
  AscendingMemory();
  AscendingMemory(const AscendingMemory&) = delete;
  AscendingMemory& operator=(const AscendingMemory&) = delete;
  ~AscendingMemory();

  // As malloc and free. null: not from here, take the system's.
  static void* take(std::size_t bytes);
  static bool give(void* block);  // whether it was from here
  static std::size_t size_of(const void* block);
};

}  // namespace syslab::fuzz
