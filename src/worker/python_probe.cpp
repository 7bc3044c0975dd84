#include "worker/python_probe.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "core/error.hpp"
#include "core/process.hpp"

namespace syslab::worker {
namespace {

// Prints the known modules that the file imports at its top level and that cannot be found; looking imports nothing.
constexpr const char* kProbe = R"(
import ast, importlib.util, pathlib, sys
path = pathlib.Path(sys.argv[1])
try:
    tree = ast.parse(path.read_bytes())
except (OSError, SyntaxError, ValueError):
    sys.exit(0)
sys.path.insert(0, str(path.parent))
names = set()
for node in tree.body:
    if isinstance(node, ast.Import):
        names.update(alias.name.split(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names.add(node.module.split(".")[0])
print(" ".join(sorted(n for n in names & {"numpy", "torch", "triton"} if importlib.util.find_spec(n) is None)))
)";

std::string all_output(Process& process) {
  std::string text;
  std::array<char, 1024> chunk;
  for (ssize_t got = 0; (got = ::read(process.from_child(), chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

std::string python_problem(const std::string& path) {
  const std::string interpreter = python_interpreter();
  std::string missing;
  ExitStatus exit;
  try {
    SpawnOptions options;
    options.argv = {interpreter, "-c", kProbe, path};
    options.capture_stderr = false;
    Process process = Process::spawn(options);
    process.close_input();
    missing = all_output(process);
    exit = process.wait();
  } catch (const Error& error) {
    return fmt::format("'{}' cannot be started: {}", interpreter, error.what());
  }
  if (exit.signalled || exit.code != 0) return fmt::format("'{}' failed: {}", interpreter, exit.describe());
  while (!missing.empty() && (missing.back() == '\n' || missing.back() == ' ')) missing.pop_back();
  return missing.empty() ? "" : fmt::format("'{}' does not have what the file imports: {}", interpreter, missing);
}

}  // namespace syslab::worker
