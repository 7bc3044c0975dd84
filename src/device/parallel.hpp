// Threads of the host: one loop shape, on OpenMP where the compiler has it and plain otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

namespace syslab::device {

int thread_count();  // of parallel_for; OMP_NUM_THREADS is obeyed
// Sets it for loops that this thread starts from now on (at least 1). Without OpenMP there is always one thread.
void set_thread_count(int count);
// Also true in the body of a loop that was told to stay on one thread: what it calls stays there too.
bool inside_parallel_for();

// Runs body(index, thread) for index in [0, count), dynamically scheduled, `thread` in [0, thread_count()). The first
// exception thrown by a body is rethrown here after all threads ended; indices not begun by then are dropped. Results
// must not depend on the thread. A loop inside a loop runs on the calling thread alone, as thread 0.
//
// All threads of a loop are waited for, also one that the machine has not run yet: on a busy machine that costs
// milliseconds. Whoever knows that the work is small says so by `most_threads`.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t index, int thread)>& body,
                  int most_threads = std::numeric_limits<int>::max());

}  // namespace syslab::device
