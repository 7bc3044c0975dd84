// How the processes that serve --mine are started, and where the interpreter and the scripts of tools/python are found.
#include <array>
#include <filesystem>
#include <span>
#include <string>

#include "core/environment_variable.hpp"
#include "core/error.hpp"
#include "worker/foreign.hpp"
#include "worker/python_probe.hpp"

namespace syslab::worker {

// Files of tools/python, put in by the build.
extern const char* const kPythonAutogradText;
extern const char* const kPythonCompilersText;
extern const char* const kPythonFunctionsText;
extern const char* const kPythonSignatureText;
extern const char* const kPythonBesideText;
extern const char* const kPythonKernelsText;
extern const char* const kPythonGpuText;
extern const char* const kPythonGuardsText;
extern const char* const kPythonLibraryText;
extern const char* const kPythonLoadingText;
extern const char* const kPythonTensorsText;
extern const char* const kPythonWorkerText;
extern const char* const kPythonCollectivesText;
extern const char* const kPythonHandedInText;
extern const char* const kPythonTrainingText;
extern const char* const kPythonRanksText;
extern const char* const kPythonTransformerText;
extern const char* const kPythonTimingText;
extern const char* const kPythonYardsticksText;
extern const char* const kPythonTorchText;
extern const char* const kPythonPlanningText;
extern const char* const kPythonDdpText;
extern const char* const kPythonShardedText;
extern const char* const kPythonFsdpText;
extern const char* const kPythonParallelText;
extern const char* const kPythonReferenceText;

namespace {

struct Script {
  const char* name;
  const char* text;
};

// Makes each pair of arguments, a name and a text, a module, up to an empty name, and runs the next as the program.
constexpr const char* kRunTexts =
    "import sys, types\n"
    "while name := sys.argv.pop(1):\n"
    "    module = sys.modules[name] = types.ModuleType(name)\n"
    "    exec(sys.argv.pop(1), module.__dict__)\n"
    "exec(sys.argv.pop(1))\n";

// The same, but that a module is run when it is first imported: of what may not be importable here.
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

// The scripts are arguments, not files: so it works wherever the binary was copied to, always has the host's version,
// and leaves nothing behind when we are killed.
void add_scripts(std::vector<std::string>& command, std::span<const Script> modules, const char* program,
                 const char* how = kRunTexts) {
  command.insert(command.end(), {"-c", how});
  for (const Script& one : modules) command.insert(command.end(), {one.name, one.text});
  command.insert(command.end(), {"", program});
}

// The last of the scripts is the program, which imports those before it. Its arguments are to follow.
std::vector<std::string> python_program(std::span<const Script> scripts, const char* how = kRunTexts) {
  std::vector<std::string> command{python_interpreter()};
  const std::string program = std::string(scripts.back().name) + ".py";
  if (const std::string folder = environment_variable("SYSLAB_PYTHON_DIR"); !folder.empty()) {
    command.push_back(folder + "/" + program);
    if (!std::filesystem::exists(command.back())) {
      throw Error(ErrorKind::usage, "SYSLAB_PYTHON_DIR is set, but there is no " + command.back());
    }
  } else {
    add_scripts(command, scripts.first(scripts.size() - 1), scripts.back().text, how);
  }
  return command;
}

std::vector<std::string> python_command(std::span<const Script> scripts, const MineRequest& mine) {
  std::vector<std::string> command = python_program(scripts);
  command.insert(command.end(), {"--mine", mine.name + "=" + mine.path + ":" + mine.python_class});
  if (mine.is_function()) command.push_back("--function");
  return command;
}

// What every process of ranks stands on.
std::vector<Script> scripts_of_ranks() {
  return {{"syslab_guards", kPythonGuardsText},
          {"syslab_loading", kPythonLoadingText},
          {"syslab_tensors", kPythonTensorsText},
          {"syslab_compilers", kPythonCompilersText},
          {"syslab_library", kPythonLibraryText},
          {"syslab_signature", kPythonSignatureText},
          {"syslab_functions", kPythonFunctionsText},
          {"syslab_beside", kPythonBesideText},
          {"syslab_kernels", kPythonKernelsText},
          {"syslab_worker", kPythonWorkerText},
          {"syslab_collectives", kPythonCollectivesText},
          {"syslab_handed_in", kPythonHandedInText},
          {"syslab_training", kPythonTrainingText},
          {"syslab_transformer", kPythonTransformerText},
          {"syslab_timing", kPythonTimingText}};
}

// What imports somebody's class or function, and what that stands on.
std::array<Script, 12> worker_scripts() {
  return {{{"syslab_guards", kPythonGuardsText},
           {"syslab_loading", kPythonLoadingText},
           {"syslab_tensors", kPythonTensorsText},
           {"syslab_gpu", kPythonGpuText},
           {"syslab_compilers", kPythonCompilersText},
           {"syslab_library", kPythonLibraryText},
           {"syslab_signature", kPythonSignatureText},
           {"syslab_functions", kPythonFunctionsText},
           {"syslab_beside", kPythonBesideText},
           {"syslab_kernels", kPythonKernelsText},
           {"syslab_autograd", kPythonAutogradText},
           {"syslab_worker", kPythonWorkerText}}};
}

}  // namespace

std::string python_interpreter() {
  const std::string chosen = environment_variable("SYSLAB_PYTHON");
  return chosen.empty() ? "python3" : chosen;
}

std::vector<std::string> python_worker_command(const MineRequest& mine) {
  return python_command(worker_scripts(), mine);
}

std::vector<std::string> python_command_beside_worker(const char* program) {
  std::vector<std::string> command{python_interpreter()};
  add_scripts(command, worker_scripts(), program);
  return command;
}

std::vector<std::string> python_ranks_command(const MineRequest& mine) {
  std::vector<Script> scripts = scripts_of_ranks();
  scripts.push_back({"syslab_ranks", kPythonRanksText});
  return python_command(scripts, mine);
}

std::vector<std::string> python_lab_ranks_command() {
  std::vector<Script> scripts = scripts_of_ranks();
  scripts.insert(scripts.end(), {{"syslab_yardsticks", kPythonYardsticksText},
                                 {"syslab_torch", kPythonTorchText},
                                 {"syslab_planning", kPythonPlanningText},
                                 {"syslab_ddp", kPythonDdpText},
                                 {"syslab_sharded", kPythonShardedText},
                                 {"syslab_fsdp", kPythonFsdpText},
                                 {"syslab_parallel", kPythonParallelText},
                                 {"syslab_ranks", kPythonRanksText}});
  std::vector<std::string> command = python_program(scripts, kRunTextsWhenWanted);
  command.emplace_back("--lab");
  return command;
}

std::vector<std::string> python_reference_command(const std::string& reference, const std::string& inputs) {
  const auto beside = worker_scripts();
  std::vector<Script> scripts(beside.begin(), beside.end());
  scripts.push_back({"syslab_reference", kPythonReferenceText});
  std::vector<std::string> command = python_program(scripts);
  command.insert(command.end(), {"--reference", reference, "--inputs", inputs});
  return command;
}

// By the link rather than its target: a build may have replaced the file.
std::vector<std::string> library_worker_command(const MineRequest& mine, const std::string& device) {
  std::vector<std::string> command{"/proc/self/exe", "judged", mine.name + "=" + mine.path};
  if (device != "cpu") command.push_back(device);
  return command;
}

}  // namespace syslab::worker
