#include "cli/verbs/watch.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/text/text.hpp"
#include "runner/interruption.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::size_t kMost = 10'000;
constexpr auto kLook = 250ms;
// An editor writes a file in several steps, and a compiler a library: what has not changed for so long is whole.
constexpr auto kSettled = 300ms;

bool is_source(const fs::path& file) {
  static const std::set<std::string> kEndings{".py", ".so", ".c", ".cc", ".cpp", ".h", ".hpp", ".cu", ".cuh"};
  return kEndings.contains(file.extension().string());
}

void stamp(const fs::path& file, Stamps& into) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return;
  const auto nanoseconds = [](const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; };
  into[file] = {nanoseconds(found.st_mtim), nanoseconds(found.st_ctim), static_cast<std::uintmax_t>(found.st_size),
                found.st_ino};
}

void stamp_all(const fs::path& folder, Stamps& into) {
  std::error_code gone;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, gone);
  for (const fs::recursive_directory_iterator end; !gone && entry != end && into.size() < kMost;
       entry.increment(gone)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(ignored)) {
      if (name.starts_with(".") || name == "__pycache__" || name == "node_modules") entry.disable_recursion_pending();
    } else if (is_source(entry->path())) {
      stamp(entry->path(), into);
    }
  }
}

// False once a signal came.
bool await_change(const Console& console, const std::vector<std::string>& mine, const Stamps& before) {
  const runner::Interruption interruption;
  console.note(fmt::format("waiting for a change of {}; Ctrl-C ends",
                           counted(static_cast<std::int64_t>(before.size()), "file")));
  const auto interrupted = [&](std::chrono::milliseconds time) {
    pollfd signal{interruption.fd(), POLLIN, 0};
    return ::poll(&signal, 1, static_cast<int>(time.count())) > 0 || interruption.signal() != 0;
  };
  while (!interrupted(kLook)) {
    Stamps now = stamps_of(mine);
    if (now == before) continue;
    while (!interrupted(kSettled)) {
      Stamps later = stamps_of(mine);
      if (later == now) return true;
      now = std::move(later);
    }
  }
  return false;
}

}  // namespace

Stamps stamps_of(const std::vector<std::string>& mine) {
  Stamps all;
  for (const std::string& text : mine) {
    const std::size_t equals = text.find('=');
    std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    std::error_code none;
    if (const std::size_t colon = path.rfind(".py:"); colon != std::string::npos) path.resize(colon + 3);
    const fs::path file = fs::absolute(path, none);
    if (fs::is_directory(file, none)) {
      stamp_all(file, all);
    } else if (file.extension() == ".py") {
      stamp_all(file.parent_path(), all);  // with what it imports
    } else {
      stamp(file, all);
    }
  }
  return all;
}

Exit watch(const Context& context, const std::vector<std::string>& mine,
           const std::function<Exit(bool only_failed)>& check) {
  Stamps seen = stamps_of(mine);
  Exit ended = check(false);
  while (runner::Interruption::latest() == 0) {
    if (!await_change(context.console, mine, seen)) return ended;
    seen = stamps_of(mine);
    try {
      const bool failed = ended == Exit::wrong;
      ended = check(failed);
      if (failed && ended == Exit::well) ended = check(false);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::config) throw;
      context.console.note(error.what());
    }
  }
  return ended;
}

}  // namespace syslab::cli
