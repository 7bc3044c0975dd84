#include "contract/task.hpp"

#include <algorithm>
#include <array>

namespace syslab {

std::string_view to_string(Task task) {
  switch (task) {
    case Task::measure:
      return "measure";
    case Task::law:
      return "law";
    case Task::paired:
      return "paired";
    case Task::code:
      return "code";
  }
  return "?";
}

std::optional<Task> task_of(std::string_view word) {
  constexpr std::array kAll{Task::measure, Task::law, Task::paired, Task::code};
  const auto found = std::ranges::find(kAll, word, [](Task one) { return to_string(one); });
  return found == kAll.end() ? std::nullopt : std::optional(*found);
}

}  // namespace syslab
