// What one attempt at a case is asked to do. Plans and stores hold `measure` and `law`; the others are asked of workers
// alone.
#pragma once

#include <optional>
#include <string_view>

namespace syslab {

enum class Task {
  measure,  // checked against the reference, then timed
  law,      // one law is searched
  paired,   // timed in bursts that the host orders
  code,     // its kernels are listed, not timed
};
std::string_view to_string(Task task);
std::optional<Task> task_of(std::string_view word);

}  // namespace syslab
