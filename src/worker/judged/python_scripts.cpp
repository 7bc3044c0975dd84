#include "worker/judged/python_scripts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace syslab::worker {

const PythonScript& python_script(std::string_view name) {
  const auto all = python_scripts();
  const auto found = std::ranges::find(all, name, &PythonScript::name);
  if (found == all.end()) {
    throw Error(ErrorKind::internal, fmt::format("src/python/meson.build lists no {}.py", name));
  }
  return *found;
}

}  // namespace syslab::worker
