// Threads of the host: one loop shape, on OpenMP where the compiler has it and plain otherwise.
#pragma once

#include <cstdint>
#include <functional>

namespace syslab::device {

int thread_count();  // of parallel_for; OMP_NUM_THREADS is obeyed

// Runs body(index, thread) for index in [0, count), dynamically scheduled, `thread` in [0, thread_count()). The first
// exception thrown by a body is rethrown here after all threads ended. Results must not depend on the thread.
void parallel_for(std::int64_t count, const std::function<void(std::int64_t index, int thread)>& body);

}  // namespace syslab::device
