#include "device/blas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <sstream>

#include "core/error.hpp"
#include "core/process/own_memory.hpp"
#include "core/text/units.hpp"
#include "device/parallel.hpp"
#include "device/plain_gemm.hpp"

#if SYSLAB_OPENBLAS
#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>

#include <cstdlib>
#endif

namespace syslab::device {

namespace {

// Values of CBLAS's enumerations (the CBLAS standard, "cblas.h").
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

// OpenBLAS's entry points; all null if it is absent. Its integers are 32-bit (the LP64 build that Debian ships).
struct OpenBlas {
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                int) = nullptr;
  void (*dgemm)(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*,
                int) = nullptr;
  void (*set_num_threads)(int) = nullptr;
  std::string name = "plain loops (no OpenBLAS found)";
};

#if SYSLAB_OPENBLAS
template <typename Function>
void look_up(void* library, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, symbol));
}

// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH … SkylakeX MAX_THREADS=64" and "SkylakeX" → "OpenBLAS 0.3.21 (SkylakeX)".
std::string readable_name(const char* config, const char* core) {
  std::istringstream words(config);
  std::string product, version;
  words >> product >> version;
  return core == nullptr ? fmt::format("{} {}", product, version) : fmt::format("{} {} ({})", product, version, core);
}

// Upper bound on OpenBLAS's threads: those started when it is loaded (one per processor unless a variable says
// otherwise), or those that we shall request.
int openblas_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int started = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  for (const char* variable : {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(variable);
    const int asked = text == nullptr ? 0 : std::atoi(text);
    if (asked <= 0) continue;
    started = std::min(started, asked);
    break;
  }
  return std::max(started, thread_count());
}

// OpenBLAS allocates a buffer for each of its threads and for each of ours that multiplies at the same time. If the
// system refuses, it retries forever; if a thread's stack is refused, the process is interrupted. Sizes measured with
// OpenBLAS 0.3.21 and 0.3.26 on x86-64: 128 MiB per buffer, less than 48 MiB for the library.
std::string no_room_for_openblas() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  constexpr std::uint64_t kBuffer = 128U << 20, kStack = 8U << 20, kLibrary = 48U << 20;
  const auto threads = static_cast<std::uint64_t>(openblas_threads());
  const std::uint64_t needed = kLibrary + (2 * threads - 1) * kBuffer + threads * kStack;
  const std::uint64_t taken = own_memory("VmSize").value_or(0);
  const std::uint64_t room = limit.rlim_cur > taken ? limit.rlim_cur - taken : 0;
  if (room >= needed) return {};
  return fmt::format(
      "OpenBLAS reserves up to {} of addresses for {} threads and would wait for ever for what it does not "
      "get; the memory limit leaves {}: raise it, set OPENBLAS_NUM_THREADS and OMP_NUM_THREADS to less, or "
      "take an implementation without BLAS",
      format_bytes(needed), threads, format_bytes(room));
}

std::atomic<bool> opened = false;

OpenBlas open_openblas() {
  if (const std::string why = no_room_for_openblas(); !why.empty()) throw Error(ErrorKind::oom, why, "dlopen");
  opened = true;
  OpenBlas blas;
  void* library = nullptr;
  for (const char* file : {"libopenblas.so.0", "libopenblas.so"}) {
    if (library == nullptr) library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) return blas;
  OpenBlas found;
  char* (*config)() = nullptr;
  char* (*core)() = nullptr;
  look_up(library, "cblas_sgemm", found.sgemm);
  look_up(library, "cblas_dgemm", found.dgemm);
  look_up(library, "openblas_set_num_threads", found.set_num_threads);
  look_up(library, "openblas_get_config", config);
  look_up(library, "openblas_get_corename", core);
  if (found.sgemm == nullptr || found.dgemm == nullptr || found.set_num_threads == nullptr) return blas;
  found.name = readable_name(config == nullptr ? "OpenBLAS" : config(), core == nullptr ? nullptr : core());
  return found;  // the library stays open: its threads run in its code
}
#else
std::string no_room_for_openblas() { return {}; }
std::atomic<bool> opened = true;

OpenBlas open_openblas() {
  OpenBlas blas;
  blas.name = "plain loops (built without OpenBLAS)";
  return blas;
}
#endif

const OpenBlas& openblas() {
  static const OpenBlas blas = open_openblas();
  return blas;
}

// Inside our own loop every thread multiplies alone; outside, OpenBLAS uses as many threads as our loops would.
// Set only on a change, since OpenBLAS takes a lock to set it.
void agree_on_threads(const OpenBlas& blas) {
  static std::mutex mutex;
  static int current = 0;
  const int wanted = inside_parallel_for() ? 1 : thread_count();
  const std::lock_guard lock(mutex);
  if (current == wanted) return;
  blas.set_num_threads(wanted);
  current = wanted;
}

template <typename T, typename Entry>
void gemm(Entry entry, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha,
          const T* a, std::int64_t lda, const T* b, std::int64_t ldb, T beta, T* c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  constexpr std::int64_t kLargest = 0x7fffffff;
  if (entry == nullptr || std::max({m, n, k, lda, ldb, ldc}) > kLargest) {
    plain_gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return;
  }
  agree_on_threads(openblas());
  entry(kRowMajor, transpose_a ? kTranspose : kNoTranspose, transpose_b ? kTranspose : kNoTranspose,
        static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b,
        static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}

}  // namespace

void sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  gemm(openblas().sgemm, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void dgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
           const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
           std::int64_t ldc) {
  gemm(openblas().dgemm, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

bool openblas_found() { return openblas().sgemm != nullptr; }

std::string blas_name() {
  return !opened && !no_room_for_openblas().empty() ? "OpenBLAS (not opened under this memory limit)" : openblas().name;
}

}  // namespace syslab::device
