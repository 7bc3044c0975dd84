#include "device/blas.hpp"

#include <fmt/format.h>

#include <mutex>
#include <sstream>

#include "device/parallel.hpp"
#include "device/plain_gemm.hpp"

#if SYSLAB_OPENBLAS
#include <dlfcn.h>
#endif

namespace syslab::device {

namespace {

// Values of CBLAS's enumerations (the CBLAS standard, "cblas.h").
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

// OpenBLAS's entry points; all null where it is absent. Its integers are 32-bit (the LP64 build that Debian ships).
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

OpenBlas open_openblas() {
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
// Set only on a change, since setting takes a lock inside OpenBLAS.
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

std::string blas_name() { return openblas().name; }

}  // namespace syslab::device
