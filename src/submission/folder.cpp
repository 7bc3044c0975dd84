#include "submission/folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <optional>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/files/remove_tree.hpp"
#include "core/text/printable.hpp"
#include "core/text/text.hpp"
#include "judge/landlock.hpp"
#include "judge/walls.hpp"
#include "submission/script.hpp"
#include "worker/judged/python_probe.hpp"
#include "worker/judged/python_scripts.hpp"

namespace syslab::submission {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kUnpacking{300};
constexpr std::uint64_t kUnpackingMemory = 2ULL << 30;  // as the script says, which somebody's interpreter need not run
constexpr int kDeepest = 3;                             // a zip of a folder of a folder

void empty(const fs::path& folder) {
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    if (!remove_tree(entry->path().string(), kMostCleaning)) {
      std::error_code ignored;
      fs::remove(entry->path(), ignored);  // a file
    }
  }
}

bool is_file(const fs::path& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

// Folders that a project may lie in: not what was installed, or belongs to tools.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (name.starts_with(".") || name == "node_modules" || !entry->is_directory(ignored)) continue;
    if (!entry->is_symlink(ignored)) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

// The project's root: the nearest folder with tests/adapters.py or adapters.py. Of several equally near there is none
// that was meant.
fs::path find_root(const fs::path& top) {
  std::vector<fs::path> level{top};
  for (int depth = 0; depth <= kDeepest; ++depth) {
    std::vector<fs::path> roots, next;
    for (const fs::path& folder : level) {
      if (is_file(folder / "tests" / "adapters.py") || is_file(folder / "adapters.py")) roots.push_back(folder);
      for (fs::path& inner : folders_in(folder)) next.push_back(std::move(inner));
    }
    if (roots.size() > 1) {
      throw Error(ErrorKind::usage,
                  fmt::format("there are {} projects with an adapters.py in it, {} and {} among them; "
                              "name the one that is meant",
                              roots.size(), one_line(roots[0].lexically_relative(top).string()),
                              one_line(roots[1].lexically_relative(top).string())));
    }
    if (roots.size() == 1) return roots.front();
    level = std::move(next);
  }
  throw Error(ErrorKind::usage, "there is neither tests/adapters.py nor adapters.py in it, nor in a folder of it");
}

}  // namespace

bool is_submission(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none) || (has_zip_ending(path) && is_file(path));
}

bool has_zip_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& letter : ending) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return ending == ".zip";
}

fs::path project_of(const fs::path& path) {
  if (path.filename() != "adapters.py" || !is_file(path)) return path;
  const fs::path folder = fs::absolute(path).lexically_normal().parent_path();
  return folder.filename() == "tests" ? folder.parent_path() : folder;
}

void unpack(const fs::path& zip, const fs::path& folder) {
  const char* const script = worker::python_script("syslab_unzip").text;
  // The zip's name is not in the command line: it tells who has handed it in, and others are judged meanwhile.
  // What was checked before may have named the interpreter (check --watch), and the zip is somebody's.
  std::optional<judge::Walls> walls;
  if (judge::walls_wanted()) {
    walls.emplace(judge::WallsOptions{
        .profile = judge::Profile::python, .writable = folder.string(), .hidden = judge::keys_folders()});
  }
  const ScriptOutput done = run_script({worker::python_interpreter(), "-I", "-c", script, folder.string()}, kUnpacking,
                                       walls ? walls->confinement() : nullptr,
                                       {{"SYSLAB_ZIP", fs::absolute(zip).string()}}, kUnpackingMemory);
  if (!done.timed_out && !done.ended.signalled && done.ended.code == 0) return;
  empty(folder);
  const std::string why = done.timed_out              ? "it takes longer to unpack than five minutes"
                          : trim(done.output).empty() ? "it cannot be unpacked: " + done.ended.describe()
                                                      : trim(done.output);
  throw Error(ErrorKind::usage, fmt::format("'{}' is refused: {}", one_line(zip.filename().string()), one_line(why)));
}

Folder::Folder(const fs::path& path) {
  std::error_code none;
  fs::path top = fs::canonical(path, none);
  if (top.empty()) throw Error(ErrorKind::usage, fmt::format("there is no '{}'", path.string()));
  if (!fs::is_directory(top, none)) {
    unpacked_ = std::make_unique<TemporaryFolder>();
    unpack(top, unpacked_->path());
    top = fs::canonical(unpacked_->path());
  }
  try {
    root_ = find_root(top);
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no submission: {}", path.string(), error.what()));
  }
  adapters_ = is_file(root_ / "tests" / "adapters.py") ? root_ / "tests" / "adapters.py" : root_ / "adapters.py";
}

std::string Folder::digest() const {
  static const std::set<std::string> kSources{".py", ".cu", ".cuh", ".cpp", ".cc", ".c", ".hpp", ".h", ".so", ".toml"};
  std::vector<fs::path> files, folders{root_};
  while (!folders.empty()) {
    const fs::path folder = folders.back();
    folders.pop_back();
    for (fs::path& inner : folders_in(folder)) {
      if (inner.filename() != "__pycache__") folders.push_back(std::move(inner));
    }
    std::error_code stop;
    for (fs::directory_iterator entry(folder, stop), end; !stop && entry != end; entry.increment(stop)) {
      if (kSources.contains(entry->path().extension().string()) && is_file(entry->path()))
        files.push_back(entry->path());
    }
  }
  std::ranges::sort(files);
  Sha256 sum;
  for (const fs::path& file : files) {
    sum.update(file.lexically_relative(root_).string() + '\0' + sha256_hex_of_file(file) + '\n');
  }
  std::string text;
  for (const std::uint8_t byte : sum.finish()) text += fmt::format("{:02x}", byte);
  return text;
}

std::string name_of(const fs::path& path) {
  std::error_code none;
  fs::path whole = fs::canonical(path, none);
  if (whole.empty()) whole = path;
  std::string name = (has_zip_ending(whole) ? whole.stem() : whole.filename()).string();
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x80 || (std::isalnum(byte) == 0 && std::string_view("_-.").find(letter) == std::string_view::npos)) {
      letter = '_';
    }
  }
  return name.empty() ? "mine" : name;
}

std::string own_python(const fs::path& root) {
  const fs::path python = root / ".venv" / "bin" / "python";
  return ::access(python.c_str(), X_OK) == 0 ? python.string() : std::string();
}

bool may_choose_python() { return judge::walls_wanted() && judge::landlock_version() > 0; }

}  // namespace syslab::submission
