// How the processes that serve --mine are started, and where the interpreter and the scripts of src/python are found.
#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/process/environment_variable.hpp"
#include "worker/judged/foreign.hpp"
#include "worker/judged/python_probe.hpp"
#include "worker/judged/python_scripts.hpp"

namespace syslab::worker {

namespace {

// Makes each pair of arguments, a name and a text, a module, up to an empty name, and runs the next as the program.
constexpr const char* kRunTexts =
    "import sys, types\n"
    "while name := sys.argv.pop(1):\n"
    "    module = sys.modules[name] = types.ModuleType(name)\n"
    "    exec(sys.argv.pop(1), module.__dict__)\n"
    "exec(sys.argv.pop(1))\n";

// The same, with no module of the folder that it runs in.
constexpr const char* kRunTextsAlone =
    "import sys\n"
    "sys.path[:] = [place for place in sys.path if place]\n"
    "import types\n"
    "while name := sys.argv.pop(1):\n"
    "    module = sys.modules[name] = types.ModuleType(name)\n"
    "    exec(sys.argv.pop(1), module.__dict__)\n"
    "exec(sys.argv.pop(1))\n";

// The same as the first, but that a module is run when it is first imported: of what may not be importable here.
constexpr const char* kRunTextsWhenWanted =
    "import importlib.machinery, sys\n"
    "texts = {}\n"
    "while name := sys.argv.pop(1):\n"
    "    texts[name] = sys.argv.pop(1)\n"
    "class Texts:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        return importlib.machinery.ModuleSpec(name, self) if name in texts else None\n"
    "    def create_module(self, spec):\n"
    "        return None\n"
    "    def exec_module(self, module):\n"
    "        exec(texts[module.__name__], module.__dict__)\n"
    "sys.meta_path.insert(0, Texts())\n"
    "exec(sys.argv.pop(1))\n";

// Adds what runs `program` with what it imports, and `further` with what that does.
// The scripts are arguments, not files: so it works wherever the binary was copied to, always has the host's version,
// and leaves nothing behind when we are killed.
void add_scripts(std::vector<std::string>& command, const PythonScript& program, const char* how,
                 const PythonScript* further = nullptr) {
  const std::span<const PythonScript> all = python_scripts();
  std::set<std::size_t> wanted(program.parts.begin(), program.parts.end());  // in order: see python_scripts.hpp
  if (further != nullptr) wanted.insert(further->parts.begin(), further->parts.end());
  command.insert(command.end(), {"-c", how});
  for (const std::size_t one : wanted) {
    if (all[one].name != program.name) command.insert(command.end(), {std::string(all[one].name), all[one].text});
  }
  command.insert(command.end(), {"", program.text});
}

// The interpreter and the program, from SYSLAB_PYTHON_DIR where that is set. Its arguments are to follow.
std::vector<std::string> python_program(const PythonScript& program, const char* how = kRunTexts,
                                        const PythonScript* further = nullptr) {
  std::vector<std::string> command{python_interpreter()};
  if (const std::string folder = environment_variable("SYSLAB_PYTHON_DIR"); !folder.empty()) {
    command.push_back(fmt::format("{}/{}.py", folder, program.name));
    if (!std::filesystem::exists(command.back())) {
      throw Error(ErrorKind::usage, "SYSLAB_PYTHON_DIR is set, but there is no " + command.back());
    }
  } else {
    add_scripts(command, program, how, further);
  }
  return command;
}

}  // namespace

std::string python_interpreter() {
  const std::string chosen = environment_variable("SYSLAB_PYTHON");
  return chosen.empty() ? "python3" : chosen;
}

std::vector<std::string> python_worker_command(const Submitted& mine) {
  std::vector<std::string> command = python_program(python_script("syslab_worker"));
  if (mine.is_function()) command.emplace_back("--function");
  return command;
}

std::string implementation_of(const Submitted& mine) { return mine.path() + ":" + mine.inside(); }

// Without the name that the user gave it, as above: both sides of a comparison may be the same file.
std::vector<std::string> python_ranks_command(const Submitted& mine) {
  std::vector<std::string> command = python_program(python_script("syslab_ranks"));
  command.insert(command.end(), {"--mine", "=" + implementation_of(mine)});
  return command;
}

std::vector<std::string> python_script_command(std::string_view script) {
  std::vector<std::string> command{python_interpreter()};
  add_scripts(command, python_script(script), kRunTexts);
  return command;
}

std::vector<std::string> trusted_script_command(std::string_view script) {
  std::vector<std::string> command{python_interpreter()};
  add_scripts(command, python_script(script), kRunTextsAlone);
  return command;
}

std::vector<std::string> python_lab_ranks_command() {
  std::vector<std::string> command =
      python_program(python_script("syslab_ranks"), kRunTextsWhenWanted, &python_script("syslab_yardsticks"));
  command.emplace_back("--lab");
  return command;
}

std::vector<std::string> python_reference_command(const std::string& reference, const std::string& inputs,
                                                  DeviceKind device) {
  std::vector<std::string> command = python_program(python_script("syslab_reference"));
  command.insert(command.end(),
                 {"--reference", reference, "--inputs", inputs, "--device", std::string(to_string(device))});
  return command;
}

// By the link rather than its target: a build may have replaced the file.
std::vector<std::string> library_worker_command(const Submitted& mine, DeviceKind device) {
  std::vector<std::string> command{"/proc/self/exe", "judged", "=" + mine.path()};  // without its name, as above
  if (device != DeviceKind::cpu) command.emplace_back(to_string(device));
  return command;
}

}  // namespace syslab::worker
