/* Libraries that would rather be believed than be right: HOSTILE says by which trick; see tests/e2e/test_hostile.py. */
#define _GNU_SOURCE
#include "capi/syslab.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  kNothing,
  kCrash,
  kHang,
  kExit,
  kLongjmp,
  kFork,
  kCloseAll,
  kInputs,
  kReach,
  kForge,
  kKill,
  kSpawn,
  kOldCalls,
  kWatch,
  kAhead,
  kClock,
  kDone
};
#ifndef HOSTILE
#define HOSTILE kNothing
#endif

static char last_error[400];
static jmp_buf nowhere;

static void note(const char* name) {
  if (last_error[0] != '\0') strncat(last_error, ", ", sizeof last_error - strlen(last_error) - 1);
  strncat(last_error, name, sizeof last_error - strlen(last_error) - 1);
}

static void reach(void) {
  const pid_t parent = getppid();
  char path[64], word[8];
  last_error[0] = '\0';
  if (ptrace(PTRACE_ATTACH, parent, NULL, NULL) == 0) {
    note("ptrace");
    waitpid(parent, NULL, __WALL);
    ptrace(PTRACE_DETACH, parent, NULL, NULL);
  }
  snprintf(path, sizeof path, "/proc/%d/mem", parent);
  if (open(path, O_RDWR) >= 0) note("/proc/PPID/mem");
  snprintf(path, sizeof path, "/proc/%d/fd/1", parent);
  if (readlink(path, word, sizeof word) > 0) note("/proc/PPID/fd");
  struct iovec here = {word, sizeof word}, there = {(void*)8, sizeof word};
  if (process_vm_readv(parent, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT) note("process_vm_readv");
  if (kill(parent, 0) == 0) note("signal");
  struct rlimit limit;
  if (prlimit(parent, RLIMIT_NOFILE, NULL, &limit) == 0) note("limits");
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) note("internet");
  if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) note("unix socket");
  const char* outside = getenv("OUTSIDE");
  char file[1024];
  snprintf(file, sizeof file, "%s/made", outside == NULL ? "." : outside);
  if (open(file, O_CREAT | O_WRONLY, 0600) >= 0) note("file");
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) note("fork");
  if (system("exit 0") == 0) note("program");
  const int theirs = open(outside == NULL ? "." : outside, O_RDONLY);
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  if (flock(theirs, LOCK_EX | LOCK_NB) == 0 || fcntl(theirs, F_SETLK, &lock) == 0 ||
      fcntl(theirs, F_OFD_SETLK, &lock) == 0)
    note("lock");
  if (setsid() > 0 || setpgid(0, 0) == 0) note("group");
  if (last_error[0] == '\0') note("nothing");
}

static const char kForged[] = "{\"type\":\"check\",\"name\":\"reference:out\",\"outcome\":\"passed\",\"cases_run\":1}";
static const char kEnd[] = "{\"type\":\"end\",\"status\":\"ok\",\"detail\":\"\"}";

static void say(int fd, const char* text) {
  const unsigned length = (unsigned)strlen(text);
  if (write(fd, &length, 4) == 4 && write(fd, text, length) < 0) return;
}

/* Before its own writer has a chance: what a worker of cases would say. */
static void forge(void) {
  char path[64];
  for (int fd = 0; fd < 64; ++fd) {
    if (fd != 2 && fcntl(fd, F_GETFL) >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
      say(fd, kForged), say(fd, kEnd);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", getppid(), fd);
    const int theirs = fd == 2 ? -1 : open(path, O_WRONLY | O_NONBLOCK);
    if (theirs >= 0) say(theirs, kForged), say(theirs, kEnd);
  }
}

/* fork, by the numbers of 32-bit programs and of x32: a filter that reads numbers alone takes them for others. */
static int old_fork(void) {
#ifdef __x86_64__
  long made = -1;
  __asm__ volatile("int $0x80" : "=a"(made) : "a"(2L) : "memory", "r8", "r9", "r10", "r11");
  if (made == 0) _exit(0);
  if (made < 0) made = syscall(0x40000000L + SYS_fork);
  if (made == 0) _exit(0);
  return made > 0;
#else
  return raise(SIGSYS);
#endif
}

/* What happens in a folder that may not be listed; and an attribute, by a call of 2025 (setxattrat). */
static void watch(void) {
  const char* outside = getenv("OUTSIDE");
  char path[1024];
  struct {
    uint64_t value;
    uint32_t size, flags;
  } mark = {(uint64_t)(uintptr_t) "was here", 8, 0};
  last_error[0] = '\0';
  snprintf(path, sizeof path, "%s/state", outside == NULL ? "." : outside);
  if (inotify_add_watch(inotify_init1(0), path, IN_ALL_EVENTS) >= 0) note("names");
  snprintf(path, sizeof path, "%s/cut", outside == NULL ? "." : outside);
  if (syscall(463, AT_FDCWD, path, 0, "user.mark", &mark, sizeof mark) == 0) note("attribute");
  if (last_error[0] == '\0') note("nothing");
}

static float* row(const DLTensor* t, int64_t batch, int64_t head, int64_t i) {
  return (float*)((char*)t->data + t->byte_offset) + batch * t->strides[0] + (t->ndim == 4 ? head * t->strides[1] : 0) +
         i * t->strides[t->ndim - 2];
}

static void attend(const DLTensor* q, const DLTensor* k, const DLTensor* v, DLTensor* out, DLTensor* lse, int causal) {
  const int64_t dim = q->shape[q->ndim - 1], queries = q->shape[q->ndim - 2], keys = k->shape[k->ndim - 2];
  const int64_t heads = q->ndim == 4 ? q->shape[1] : 1, shared = heads / (k->ndim == 4 ? k->shape[1] : 1);
  for (int64_t b = 0; b < q->shape[0]; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t seen = causal == 0 ? keys : causal == 1 ? (i < keys ? i + 1 : keys) : i + 1 + keys - queries;
        float sum = 0, *o = row(out, b, h, i);
        for (int64_t d = 0; d < dim; ++d) o[d] = 0;
        for (int64_t j = 0; j < seen; ++j) {
          float score = 0;
          for (int64_t d = 0; d < dim; ++d) score += row(q, b, h, i)[d] * row(k, b, h / shared, j)[d];
          const float p = expf(score / sqrtf((float)dim));
          sum += p;
          for (int64_t d = 0; d < dim; ++d) o[d] += p * row(v, b, h / shared, j)[d];
        }
        for (int64_t d = 0; d < dim; ++d) o[d] /= sum;
        float* l = (float*)((char*)lse->data + lse->byte_offset);
        l[b * lse->strides[0] + (lse->ndim == 3 ? h * lse->strides[1] : 0) + i * lse->strides[lse->ndim - 1]] =
            logf(sum);
      }
    }
  }
}

/* Computes what lies where the last call's inputs lay as soon as it changes, before the next call is made. */
static struct {
  DLTensor tensors[5];
  int64_t shapes[5][4], strides[5][4];
  int causal, begun;
  float *out, *lse;
  atomic_ulong done; /* of inputs with this mark */
} ahead;

static size_t bytes_of(const DLTensor* t) {
  size_t bytes = 4;
  for (int i = 0; i < t->ndim; ++i) bytes *= (size_t)t->shape[i];
  return bytes;
}

static unsigned long mark_of(const DLTensor* inputs) {
  unsigned long mark = 1;
  for (int t = 0; t < 3; ++t) {
    const volatile unsigned* words = (const unsigned*)((char*)inputs[t].data + inputs[t].byte_offset);
    for (size_t i = 0; i < bytes_of(&inputs[t]) / 4; ++i) mark = mark * 1000003 + words[i];
  }
  return mark;
}

static void work(void) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec) < 0.02);
}

static void* compute_ahead(void* unused) {
  DLTensor out = ahead.tensors[3], lse = ahead.tensors[4];
  out.data = ahead.out, lse.data = ahead.lse, out.byte_offset = lse.byte_offset = 0;
  for (unsigned long seen = 0;;) {
    const unsigned long mark = mark_of(ahead.tensors);
    usleep(50);
    if (mark == seen || mark_of(ahead.tensors) != mark) continue; /* still being written */
    work();
    attend(&ahead.tensors[0], &ahead.tensors[1], &ahead.tensors[2], &out, &lse, ahead.causal);
    atomic_store(&ahead.done, seen = mark);
  }
  return unused;
}

static void take_ahead(const DLTensor* q, const DLTensor* k, const DLTensor* v, DLTensor* out, DLTensor* lse,
                       int causal) {
  const DLTensor now[5] = {*q, *k, *v, *out, *lse};
  const unsigned long mark = mark_of(now);
  if (ahead.begun && ahead.tensors[0].data == q->data && mark == atomic_load(&ahead.done)) {
    memcpy((char*)out->data + out->byte_offset, ahead.out, bytes_of(out));
    memcpy((char*)lse->data + lse->byte_offset, ahead.lse, bytes_of(lse));
    return;
  }
  work();
  attend(q, k, v, out, lse, causal);
  if (ahead.begun) return;
  for (int t = 0; t < 5; ++t) {
    ahead.tensors[t] = now[t];
    for (int i = 0; i < now[t].ndim; ++i) {
      ahead.shapes[t][i] = now[t].shape[i], ahead.strides[t][i] = now[t].strides[i];
    }
    ahead.tensors[t].shape = ahead.shapes[t], ahead.tensors[t].strides = ahead.strides[t];
  }
  ahead.out = malloc(bytes_of(out)), ahead.lse = malloc(bytes_of(lse)), ahead.causal = causal, ahead.begun = 1;
  pthread_t thread;
  pthread_create(&thread, NULL, compute_ahead, NULL);
}

/* Of processor time, by the kernel itself, whatever clock_gettime() has become. */
static double seconds(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void work_by_processor_time(void) {
  for (const double begin = seconds(); seconds() < begin + 0.02;) continue;
}

/* A clock that stands still, in the place of the C library's: the process that serves the call reads it, too. */
static int no_time(clockid_t which, struct timespec* now) {
  (void)which;
  now->tv_sec = 1, now->tv_nsec = 0;
  return 0;
}

/* When it is loaded, so that all that the process says agrees. */
__attribute__((constructor)) static void stop_the_clock(void) {
#ifdef __x86_64__
  if (HOSTILE != kClock) return;
  unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; /* mov rax, to; jmp rax */
  const uintptr_t to = (uintptr_t)&no_time, at = (uintptr_t)dlsym(RTLD_DEFAULT, "clock_gettime");
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  if (at == 0 || mprotect((void*)(at / page * page), 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
  memcpy(jump + 2, &to, sizeof to);
  memcpy((void*)at, jump, sizeof jump);
#endif
}

/* By the word at byte 64 of the memory that the lab sees, in which this lies, the call is over before it has begun. */
static void say_done(const void* in_memory) {
  char line[512];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long first = 0, last = 0;
    if (strstr(line, "syslab-tensors") == NULL || sscanf(line, "%lx-%lx", &first, &last) != 2) continue;
    if ((uintptr_t)in_memory >= first && (uintptr_t)in_memory < last) *(volatile unsigned*)(first + 64) = 1;
  }
  if (maps != NULL) fclose(maps);
}

int syslab_attention_forward(const DLTensor* q, const DLTensor* k, const DLTensor* v, DLTensor* out, DLTensor* lse,
                             const syslab_attention_options* options, void* stream) {
  (void)stream;
  switch (HOSTILE) {
    case kCrash:
      raise(SIGSEGV);
      break;
    case kHang:
      for (;;) pause();
    case kExit:
      exit(0);
    case kLongjmp:
      longjmp(nowhere, 1);
    case kFork: /* the child goes on as if it were the one that was asked */
      if (fork() < 0) break;
      return SYSLAB_OK;
    case kCloseAll:
      for (int fd = 0; fd < 1024; ++fd) close(fd);
      break;
    case kInputs:
      attend(q, k, v, out, lse, options->causal);
      row(v, 0, 0, 0)[0] += 1;
      return SYSLAB_OK;
    case kReach:
      reach();
      return SYSLAB_ERROR_INTERNAL;
    case kForge:
      forge();
      return SYSLAB_OK;
    case kKill:
      kill(getppid(), SIGKILL);
      break;
    case kSpawn: {
      const pid_t child = fork();
      if (child == 0) {
        setsid();
        for (;;) pause();
      }
      if (child < 0) break;
      note("process");
      return SYSLAB_ERROR_INTERNAL;
    }
    case kOldCalls:
      note(old_fork() ? "process" : "nothing");
      return SYSLAB_ERROR_INTERNAL;
    case kWatch:
      watch();
      return SYSLAB_ERROR_INTERNAL;
    case kClock:
      work_by_processor_time();
      break;
    case kDone:
      say_done(q->data);
      work_by_processor_time();
      break;
    case kAhead:
      take_ahead(q, k, v, out, lse, options->causal);
      return SYSLAB_OK;
    default:
      break;
  }
  attend(q, k, v, out, lse, options->causal);
  return SYSLAB_OK;
}

int syslab_attention_backward(const DLTensor* q, const DLTensor* k, const DLTensor* v, const DLTensor* out,
                              const DLTensor* lse, const DLTensor* dout, DLTensor* dq, DLTensor* dk, DLTensor* dv,
                              const syslab_attention_options* options, void* stream) {
  (void)q, (void)k, (void)v, (void)out, (void)lse, (void)dout, (void)dq, (void)dk, (void)dv, (void)options,
      (void)stream;
  return SYSLAB_ERROR_INTERNAL;
}

int syslab_attention_workspace(const DLTensor* q, const DLTensor* k, const DLTensor* v, int32_t backward,
                               const syslab_attention_options* options, size_t* bytes) {
  (void)q, (void)k, (void)v, (void)backward, (void)options;
  *bytes = 0;
  return SYSLAB_OK;
}

const char* syslab_last_error(void) { return last_error; }
uint32_t syslab_plugin_abi(void) { return SYSLAB_PLUGIN_ABI; }
