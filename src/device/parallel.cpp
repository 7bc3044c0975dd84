#include "device/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace syslab::device {

namespace {

thread_local bool told_to_stay = false;  // in a loop limited to one thread

void loop_here(std::int64_t count, const std::function<void(std::int64_t index, int thread)>& body, bool stay) {
  struct Mark {
    bool before = told_to_stay;
    ~Mark() { told_to_stay = before; }
  } mark;
  told_to_stay = told_to_stay || stay;
  for (std::int64_t index = 0; index < count; ++index) body(index, 0);
}

}  // namespace

#ifdef _OPENMP

int thread_count() { return omp_get_max_threads(); }
void set_thread_count(int count) { omp_set_num_threads(std::max(count, 1)); }
bool inside_parallel_for() { return told_to_stay || omp_in_parallel() != 0; }

void parallel_for(std::int64_t count, const std::function<void(std::int64_t index, int thread)>& body,
                  int most_threads) {
  const auto threads = static_cast<int>(std::min<std::int64_t>(std::min(thread_count(), most_threads), count));
  if (threads <= 1 || inside_parallel_for()) return loop_here(count, body, most_threads <= 1);
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
bool inside_parallel_for() { return told_to_stay; }

void parallel_for(std::int64_t count, const std::function<void(std::int64_t index, int thread)>& body,
                  int most_threads) {
  loop_here(count, body, most_threads <= 1);
}

#endif

}  // namespace syslab::device
