/* What a program compiled against a newer glibc asks for and an older one (2.28) does not have. tools/older_glibc links it, hidden,
 * into the release's program and library alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* glibc 2.32. "Perhaps several": reference counts are then always counted by atomic instructions. */
char __libc_single_threaded = 0;

/* glibc 2.33. Until then these were made of functions that take the layout's number first. */
#if defined(__x86_64__)
enum { kLayout = 1 };
#else
enum { kLayout = 0 };
#endif
int __xstat(int layout, const char* path, struct stat* out);
int __lxstat(int layout, const char* path, struct stat* out);
int __fxstat(int layout, int file, struct stat* out);
int __xstat64(int layout, const char* path, struct stat64* out);
int __lxstat64(int layout, const char* path, struct stat64* out);
int __fxstat64(int layout, int file, struct stat64* out);
int stat(const char* path, struct stat* out) { return __xstat(kLayout, path, out); }
int lstat(const char* path, struct stat* out) { return __lxstat(kLayout, path, out); }
int fstat(int file, struct stat* out) { return __fxstat(kLayout, file, out); }
int stat64(const char* path, struct stat64* out) { return __xstat64(kLayout, path, out); }
int lstat64(const char* path, struct stat64* out) { return __lxstat64(kLayout, path, out); }
int fstat64(int file, struct stat64* out) { return __fxstat64(kLayout, file, out); }

/* glibc 2.36; std::random_device draws from it. */
uint32_t arc4random(void) {
  uint32_t drawn;
  if (getentropy(&drawn, sizeof drawn) != 0) abort();
  return drawn;
}

/* glibc 2.30; waits of condition variables until a time of the steady clock. The machine's own where it has one. Else the wait
 * is until the same moment by the wall clock: setting that clock meanwhile changes how long it takes. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  typedef int Wait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
  static Wait* own;
  static int looked;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&own, (Wait*)(uintptr_t)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"), __ATOMIC_RELAXED);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  Wait* const wait = __atomic_load_n(&own, __ATOMIC_RELAXED);
  if (wait) return wait(condition, mutex, clock, until);
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) wall.tv_nsec += 1000000000, --wall.tv_sec;
  if (wall.tv_nsec >= 1000000000) wall.tv_nsec -= 1000000000, ++wall.tv_sec;
  return pthread_cond_timedwait(condition, mutex, &wall);
}

/* glibc 2.35; the unwinder of exceptions asks it where the tables of a module lie. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
struct Search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int look_into(struct dl_phdr_info* module, size_t size, void* data) {
  (void)size;
  struct Search* const search = data;
  const ElfW(Phdr)* tables = NULL;
  int is_inside = 0;
  for (int index = 0; index < module->dlpi_phnum; ++index) {
    const ElfW(Phdr)* const part = &module->dlpi_phdr[index];
    const uintptr_t begin = module->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) tables = part;
    if (part->p_type == PT_LOAD && search->address - begin < part->p_memsz) {
      is_inside = 1;
      search->found->dlfo_map_start = (void*)begin;
      search->found->dlfo_map_end = (void*)(begin + part->p_memsz);
    }
  }
  if (!is_inside) return 0;
  if (!tables) return -1;
  search->found->dlfo_flags = 0;
  search->found->dlfo_link_map = NULL;
  search->found->dlfo_eh_frame = (void*)(module->dlpi_addr + tables->p_vaddr);
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* found) {
  struct Search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}
#endif

/* Until glibc 2.34 a program brought its own code to run its constructors, and __libc_start_main was told of it; the start-up
 * code of newer ones leaves that to __libc_start_main, of which older ones know nothing. Newer ones still call what they are told of. */
#ifndef SYSLAB_SHARED
typedef void Function(int, char**, char**);
extern Function* __preinit_array_start[] __attribute__((visibility("hidden")));
extern Function* __preinit_array_end[] __attribute__((visibility("hidden")));
extern Function* __init_array_start[] __attribute__((visibility("hidden")));
extern Function* __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void);

static void construct(int count, char** words, char** environment) {
  for (Function** it = __preinit_array_start; it < __preinit_array_end; ++it) (*it)(count, words, environment);
  _init();
  for (Function** it = __init_array_start; it < __init_array_end; ++it) (*it)(count, words, environment);
}

int __real___libc_start_main(int (*program)(int, char**, char**), int count, char** words, Function* init, void (*fini)(void),
                             void (*loader_fini)(void), void* stack_end);
int __wrap___libc_start_main(int (*program)(int, char**, char**), int count, char** words, Function* init, void (*fini)(void),
                             void (*loader_fini)(void), void* stack_end) {
  return __real___libc_start_main(program, count, words, init ? init : construct, fini, loader_fini, stack_end);
}
#endif
