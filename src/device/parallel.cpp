#include "device/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace syslab::device {

#ifdef _OPENMP

int thread_count() { return omp_get_max_threads(); }
void set_thread_count(int count) { omp_set_num_threads(std::max(count, 1)); }
bool inside_parallel_for() { return omp_in_parallel() != 0; }

void parallel_for(std::int64_t count, const std::function<void(std::int64_t index, int thread)>& body) {
  const auto threads = static_cast<int>(std::min<std::int64_t>(thread_count(), count));
  if (threads <= 1 || inside_parallel_for()) {
    for (std::int64_t index = 0; index < count; ++index) body(index, 0);
    return;
  }
  // An exception must not leave an OpenMP region: the first is kept and thrown again outside.
  std::exception_ptr first;
  std::atomic<bool> failed{false};
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t index = 0; index < count; ++index) {
    if (failed.load(std::memory_order_relaxed)) continue;
    try {
      body(index, omp_get_thread_num());
    } catch (...) {
      if (!failed.exchange(true)) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

#else

int thread_count() { return 1; }
void set_thread_count(int) {}
bool inside_parallel_for() { return false; }

void parallel_for(std::int64_t count, const std::function<void(std::int64_t index, int thread)>& body) {
  for (std::int64_t index = 0; index < count; ++index) body(index, 0);
}

#endif

}  // namespace syslab::device
