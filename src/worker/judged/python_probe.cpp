#include "worker/judged/python_probe.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

#include "core/error.hpp"
#include "core/text/text.hpp"
#include "worker/judged/walled_python.hpp"

namespace syslab::worker {
namespace {

constexpr std::size_t kMostOfAnswer = 1U << 20;  // of an answer

// Reads the file without running or importing anything. Prints "file: " and what is wrong with it (it does not parse,
// or nothing in it is called as the class), else "modules: " and the known modules that it imports at its top level and
// that cannot be found, else nothing.
constexpr const char* kProbe = R"py(
import sys
sys.path[:] = [place for place in sys.path if place]  # not the folder that this runs in
import ast, importlib.util, pathlib, sys
path, wanted, made = pathlib.Path(sys.argv[1]), sys.argv[2].removesuffix("()"), sys.argv[2].endswith("()")
callable_will_do = sys.argv[3] == "function"
if callable_will_do:
    wanted = wanted.split(".")[0]
try:
    tree = ast.parse(path.read_bytes())
except SyntaxError as error:
    print(f"file: SyntaxError: {error.msg} ({path.name}, line {error.lineno})")
    sys.exit(0)
except (OSError, ValueError):
    sys.exit(0)
bound, classes, open_ended = set(), [], False
for node in ast.walk(tree):
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        bound.add(node.name)
    elif isinstance(node, ast.alias):
        bound.add(node.asname or node.name)
        open_ended = open_ended or node.name == "*"
    elif isinstance(node, ast.Name):
        bound.add(node.id)
        open_ended = open_ended or node.id in ("globals", "exec", "setattr", "vars")
kinds = (ast.ClassDef, ast.FunctionDef) if callable_will_do else ast.ClassDef
classes = [node.name for node in tree.body if isinstance(node, kinds)]
if wanted not in bound and not open_ended:
    print(f"file: {path.name} has no {'' if callable_will_do else 'class '}'{wanted}' (it has: {', '.join(classes) or 'none'})")
    sys.exit(0)
if not callable_will_do and not made and any(isinstance(node, ast.FunctionDef) and node.name == wanted for node in tree.body) and wanted not in classes:
    print(f"file: {path.name}: '{wanted}' is a function, expected a class with forward, or a torch.autograd.Function")
    sys.exit(0)
sys.path.insert(0, str(path.parent))
names = set()
for node in tree.body:
    if isinstance(node, ast.Import):
        names.update(alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names.add(node.module.split(".")[0])
missing = sorted(n for n in names & {
  "numpy", "torch", "triton"} if importlib.util.find_spec(n) is None)
print("modules: " + " ".join(missing) if missing else "")
)py";

}  // namespace

void choose_python_interpreter(const std::string& interpreter) {
  if (!interpreter.empty()) ::setenv("SYSLAB_PYTHON", interpreter.c_str(), 1);
}

std::string python_problem(const std::string& path, const std::string& python_class, bool is_function) {
  const std::string interpreter = python_interpreter();
  constexpr std::string_view kRemedy =
      "; expected an interpreter with the file's modules\ntry: SYSLAB_PYTHON=INTERPRETER, or install what is missing";
  PythonAnswer answer;
  try {
    // Nothing of the file is run, but what is judged may have named the interpreter (.venv), and the folder of this
    // process may be where modules of the standard library's names were handed in.
    answer =
        ask_python({interpreter, "-c", kProbe, path, python_class, is_function ? "function" : "class"}, kMostOfAnswer);
  } catch (const Error& error) {
    return fmt::format("'{}' cannot be started: {}{}", interpreter, error.what(), kRemedy);
  }
  const ExitStatus& exit = answer.exit;
  if (answer.is_cut) return fmt::format("'{}' printed too much or did not end{}", interpreter, kRemedy);
  if (exit.signalled || exit.code != 0) return fmt::format("'{}' failed: {}{}", interpreter, exit.describe(), kRemedy);
  const std::string found = trim(answer.output);
  constexpr std::string_view kFile = "file: ", kModules = "modules: ";
  if (found.starts_with(kFile)) return found.substr(kFile.size());
  if (!found.starts_with(kModules)) return {};
  return fmt::format("'{}' lacks what the file imports: {}{}", interpreter, found.substr(kModules.size()), kRemedy);
}

bool is_missing_module(const Lack& claim) {
  return claim.kind == LackKind::module ||
         (claim.kind == LackKind::package && claim.of == "builtins.ModuleNotFoundError");
}

}  // namespace syslab::worker
