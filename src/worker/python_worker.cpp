// Where the interpreter and syslab_worker.py come from.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/error.hpp"
#include "worker/foreign.hpp"
#include "worker/python_probe.hpp"

namespace syslab::worker {

extern const char* const kPythonWorkerText;  // tools/python/syslab_worker.py, put in by the build

namespace {

std::string variable_or(const char* name, std::string fallback) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(fallback) : value;
}

}  // namespace

std::string python_interpreter() { return variable_or("SYSLAB_PYTHON", "python3"); }

std::vector<std::string> python_worker_command(const MineRequest& mine) {
  std::vector<std::string> command{python_interpreter()};
  if (const std::string folder = variable_or("SYSLAB_PYTHON_DIR", ""); !folder.empty()) {
    command.push_back(folder + "/syslab_worker.py");
    if (!std::filesystem::exists(command.back())) {
      throw Error(ErrorKind::usage, "SYSLAB_PYTHON_DIR is set, but there is no " + command.back());
    }
  } else {
    // As an argument, not a file: it works wherever the binary was copied to, is never of another version than the
    // host, and leaves nothing behind when somebody kills us.
    command.insert(command.end(), {"-c", kPythonWorkerText});
  }
  command.insert(command.end(), {"--mine", mine.name + "=" + mine.path + ":" + mine.python_class});
  return command;
}

}  // namespace syslab::worker
