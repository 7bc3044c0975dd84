// Host threads: one kind of loop, on OpenMP if the compiler has it, otherwise sequential.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

namespace syslab::device {

int thread_count();  // of parallel_for; OMP_NUM_THREADS is obeyed
// Sets it for loops that this thread starts from now on (at least 1). Without OpenMP there is always one thread.
void set_thread_count(int count);
// Also true in the body of a loop limited to one thread: loops inside it stay there too.
bool inside_parallel_for();

// Runs body(index, thread) for index in [0, count), dynamically scheduled, `thread` in [0, thread_count()). The first
// exception thrown by a body is rethrown here after all threads have ended; indices not yet begun are dropped. Results
// must not depend on the thread. A nested loop runs on the calling thread alone, as thread 0.
//
// The loop waits for all its threads, even one not yet scheduled: on a busy machine that costs milliseconds. Limit
// `most_threads` for small work.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t index, int thread)>& body,
                  int most_threads = std::numeric_limits<int>::max());

}  // namespace syslab::device
