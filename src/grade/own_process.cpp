#include "grade/own_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <set>
#include <thread>

#include "core/error.hpp"
#include "core/files/remove_tree.hpp"
#include "core/files/user_file.hpp"
#include "core/text/printable.hpp"
#include "submission/folder.hpp"
#include "worker/judged/gpu_memory.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;  // of a folder, as of a zip
constexpr std::uint64_t kMostOutput = 64U << 20;
constexpr milliseconds kTick{50}, kLeaving{3000};

bool leads_to_nothing(const fs::path& link) {
  std::error_code none;
  return fs::status(link, none).type() == fs::file_type::not_found;
}

// No link is followed. Those to nothing are left out.
std::vector<std::string> copy_folder(const fs::path& from, const fs::path& to) {
  std::vector<std::string> left_out;
  std::uintmax_t files = 0, bytes = 0;
  const auto count = [&] {  // folders, too: each takes as long to copy and to remove as a file
    if (++files > kMostFiles || bytes > kMostBytes) {
      throw Error(ErrorKind::usage,
                  fmt::format("it has more than {} files and folders, or {} MB", kMostFiles, kMostBytes >> 20));
    }
  };
  for (fs::recursive_directory_iterator entry(from), end; entry != end; ++entry) {
    const fs::path relative = entry->path().lexically_relative(from);
    if (is_left_out(relative.filename())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_symlink()) {
      if (!leads_to_nothing(entry->path())) {
        throw Error(ErrorKind::usage,
                    fmt::format("'{}' is a symbolic link; hand in what it points to", one_line(relative.string())));
      }
      count();
      left_out.push_back(relative.string());
    } else if (entry->is_directory()) {
      count();
      fs::create_directories(to / relative);
    } else if (!entry->is_regular_file()) {
      throw Error(ErrorKind::usage, fmt::format("'{}' is neither a file nor a folder", one_line(relative.string())));
    } else {
      bytes += entry->file_size();
      count();
      fs::copy_file(entry->path(), to / relative);
      // What is judged has fewer rights than who copies, and modes are no part of a submission: those of a zip are not.
      fs::permissions(to / relative, fs::perms::owner_read | fs::perms::owner_write, fs::perm_options::add);
    }
  }
  std::ranges::sort(left_out);
  return left_out;
}

void remove_environments(const fs::path& folder) {
  std::vector<fs::path> found;
  for (fs::recursive_directory_iterator entry(folder), end; entry != end; ++entry) {
    if (!entry->is_directory() || !is_left_out(entry->path().filename())) continue;
    found.push_back(entry->path());
    entry.disable_recursion_pending();
  }
  for (const fs::path& one : found) fs::remove_all(one);
}

FileDescriptor open_file(const fs::path& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file) throw_errno(ErrorKind::internal, "open '" + path.string() + "'", errno, "open");
  return file;
}

// Its reading end, which holds the text and then ends. What was read from it is nowhere to be read again.
FileDescriptor pipe_of(const std::string& text) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno(ErrorKind::internal, "make a pipe", errno, "pipe2");
  FileDescriptor reading(ends[0]);
  const FileDescriptor writing(ends[1]);
  if (::write(writing.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw_errno(ErrorKind::internal, "write to a pipe", errno, "write");
  }
  return reading;
}

}  // namespace

bool is_left_out(const fs::path& name) {
  static const std::set<std::string> kLeftOut{".git", ".venv", "venv", "__pycache__", ".pytest_cache", "node_modules"};
  return kLeftOut.contains(name.string());
}

OwnFolder::OwnFolder(const fs::path& parent, const std::string& id, std::string hidden)
    : path_(parent / id), hidden_(std::move(hidden)) {
  fs::create_directories(code());
  fs::create_directories(path_ / "tmp");
}

OwnFolder::~OwnFolder() { remove_tree(path_.string(), kMostCleaning); }

std::vector<std::string> OwnFolder::take(const fs::path& submission) const {
  if (!submission::is_submission(submission)) {
    throw Error(ErrorKind::usage,
                fmt::format("there is neither a folder nor a zip '{}'", one_line(submission.filename().string())));
  }
  if (fs::is_directory(submission)) return copy_folder(submission, code());
  submission::unpack(submission, code());
  remove_environments(code());
  return {};
}

OwnFolder::Ended OwnFolder::run(std::vector<std::string> words, const std::string& text, milliseconds limit,
                                const std::function<bool()>& interrupted) const {
  const FileDescriptor input = pipe_of(text);
  const FileDescriptor output = open_file(path_ / "output", O_WRONLY | O_CREAT | O_TRUNC);
  const FileDescriptor errors = open_file(path_ / "errors", O_WRONLY | O_CREAT | O_TRUNC);
  SpawnOptions spawn;
  spawn.argv = std::move(words);
  spawn.argv.insert(spawn.argv.begin(), "/proc/self/exe");
  spawn.streams = {input.get(), output.get(), errors.get()};
  spawn.environment = {{"TMPDIR", (path_ / "tmp").string()},
                       {"OMP_NUM_THREADS", "1"},
                       {"SYSLAB_GPU_MEMORY", worker::gpu_memory_of_others()},
                       {"SYSLAB_WALLS_HIDE", hidden_},
                       {"SYSLAB_WALLS_SHOW", code().string()}};
  Process process = Process::spawn(spawn);
  const auto deadline = steady_clock::now() + limit;
  Ended ended;
  const auto is_interrupted = [&] { return interrupted && interrupted(); };
  while (!(ended.status = process.poll()) && steady_clock::now() < deadline && !is_interrupted()) {
    std::this_thread::sleep_for(kTick);
  }
  if (!ended.status) {
    process.kill_group(SIGTERM);
    const auto patience = steady_clock::now() + kLeaving;
    while (!process.poll() && steady_clock::now() < patience) std::this_thread::sleep_for(kTick);
    process.kill_group(SIGKILL);
    process.wait();
    if (is_interrupted()) throw Interrupted();
    return ended;
  }
  ended.output = read_user_file(path_ / "output", kMostOutput);
  return ended;
}

}  // namespace syslab::grade
