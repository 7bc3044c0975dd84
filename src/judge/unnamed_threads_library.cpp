// Loaded into judged processes on a GPU (LD_PRELOAD; judge/unnamed_threads.hpp): CUDA's driver opens
// /proc/self/task/THREAD/comm to name its threads, and where it may not, nothing of it works. Here it writes the names
// into nothing. Files of every other name are opened as ever.
//
// By the symbols' own names, because headers may declare fopen() as fopen64().
#include <dlfcn.h>

#include <cstring>

namespace {

using Open = void* (*)(const char*, const char*);

bool names_a_thread(const char* path) {
  constexpr char kTasks[] = "/proc/self/task/";
  if (path == nullptr || std::strncmp(path, kTasks, sizeof kTasks - 1) != 0) return false;
  const char* const behind = std::strchr(path + sizeof kTasks - 1, '/');
  return behind != nullptr && std::strcmp(behind, "/comm") == 0;
}

void* open_unless_named(const char* function, const char* path, const char* mode) {
  const auto next = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, function));
  if (next == nullptr) return nullptr;
  const bool writes = mode != nullptr && mode[0] != 'r';
  return next(writes && names_a_thread(path) ? "/dev/null" : path, mode);
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] void* syslab_fopen(const char* path, const char* mode) __asm__("fopen");
[[gnu::visibility("default")]] void* syslab_fopen64(const char* path, const char* mode) __asm__("fopen64");

void* syslab_fopen(const char* path, const char* mode) { return open_unless_named("fopen", path, mode); }
void* syslab_fopen64(const char* path, const char* mode) { return open_unless_named("fopen64", path, mode); }

}  // extern "C"
