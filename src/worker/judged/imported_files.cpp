#include "worker/judged/imported_files.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text/json_text.hpp"
#include "core/text/printable.hpp"
#include "worker/judged/python_probe.hpp"
#include "worker/judged/python_scripts.hpp"
#include "worker/judged/walled_python.hpp"

namespace syslab::worker {
namespace {

constexpr std::size_t kMostOfImports = 1U << 20;

std::vector<std::string> asked(const std::string& path) {
  PythonAnswer answer;
  try {  // -I: no module of the folder that this runs in
    const std::string program(python_script("syslab_imports").text);
    answer = ask_python({python_interpreter(), "-I", "-c", program, path}, kMostOfImports);
  } catch (const Error&) {  // no such interpreter
    return {};
  }
  std::vector<std::string> files;
  const Json told = json_or_discarded(answer.output);
  if (!told.is_array()) return {};
  for (const Json& one : told) {
    if (one.is_string()) files.push_back(printable(one.get<std::string>()));
  }
  return files;
}

}  // namespace

const std::vector<std::string>& imported_files(const std::string& path) {
  static std::map<std::string, std::vector<std::string>> known;
  const auto found = known.find(path);
  if (found != known.end()) return found->second;
  return known.emplace(path, path.ends_with(".py") ? asked(path) : std::vector<std::string>()).first->second;
}

}  // namespace syslab::worker
