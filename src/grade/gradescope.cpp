#include "grade/gradescope.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/files/temporary_folder.hpp"
#include "core/files/user_file.hpp"
#include "core/resources.hpp"
#include "core/text/text.hpp"
#include "submission/script.hpp"
#include "worker/judged/python_probe.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostZip = 512U << 20;
constexpr std::chrono::seconds kZipping{120};

std::string resource(const std::string& name) {
  const auto text = find_resource(name);
  if (!text) throw Error(ErrorKind::internal, fmt::format("this binary does not carry '{}'", name));
  return std::string(*text);
}

// As bash reads it.
std::string settings_of(const Autograder& autograder) {
  std::string text = "options=(";
  for (const std::string& word : autograder.options) text += (text.ends_with("(") ? "" : " ") + shell_word(word);
  return text + ")\n";
}

}  // namespace

void write_autograder(const Autograder& autograder, const fs::path& zip) {
  std::error_code none;
  const std::string name = autograder.wheel.filename().string();
  if (!name.starts_with("syslab-") || !name.ends_with(".whl") || !fs::is_regular_file(autograder.wheel, none)) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' is no wheel of syslab; tools/release makes out/release/syslab-*.whl",
                            autograder.wheel.string()));
  }
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  std::vector<std::string> command{worker::python_interpreter(), "-I", "-m", "zipfile", "-c",
                                   (folder / "out").string()};
  const auto add = [&](const char* file, const std::string& text, bool runs) {
    const fs::path path = folder / file;
    FileInMaking(path, text).place();
    fs::permissions(path, runs ? fs::perms(0755) : fs::perms(0644));
    command.push_back(path.string());
  };
  add("setup.sh", resource("tools/gradescope/setup.sh"), true);
  add("run_autograder", resource("tools/gradescope/run_autograder"), true);
  add("settings", settings_of(autograder), false);
  if (!autograder.rubric.empty()) add("rubric.toml", autograder.rubric, false);
  command.push_back(fs::absolute(autograder.wheel).string());
  const submission::ScriptOutput done = submission::run_script(std::move(command), kZipping, nullptr, {});
  if (done.timed_out || done.ended.signalled || done.ended.code != 0) {
    throw Error(ErrorKind::usage, fmt::format("the zip cannot be made with {}: {}", worker::python_interpreter(),
                                              done.errors.empty() ? done.ended.describe() : trim(done.errors)));
  }
  FileInMaking(zip, read_user_file(folder / "out", kMostZip)).place();
}

}  // namespace syslab::grade
