#include "compare/kept_builds.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "compare/revisions.hpp"
#include "core/error.hpp"
#include "core/files/hash.hpp"
#include "core/files/remove_tree.hpp"
#include "core/process/environment_variable.hpp"
#include "core/process/process.hpp"
#include "core/text/format_seconds.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "runner/interruption.hpp"
#include "session/capture.hpp"

namespace syslab::cli {
namespace {

namespace fs = std::filesystem;

constexpr Nanoseconds kLongest = std::chrono::minutes(30);
constexpr std::chrono::milliseconds kGlance{50};
constexpr std::uint64_t kLimit = std::uint64_t{4} << 30;
constexpr const char* kDone = "done";  // in a build's folder, written last: the commit
constexpr const char* kOwn = "syslab-builds";
constexpr const char* kTree = "tree";  // a checkout
constexpr const char* kLock = "lock";  // of a recipe: who holds it builds

fs::path cache_folder() {
  const auto from = [](const char* name) -> std::string {
    const std::string said = environment_variable(name);
    return said.starts_with('/') ? said : "";
  };
  if (const std::string said = from("SYSLAB_BUILDS"); !said.empty()) return fs::path(said) / kOwn;
  if (const std::string said = from("XDG_CACHE_HOME"); !said.empty()) return fs::path(said) / "syslab" / "builds";
  std::string home = from("HOME");
  if (const passwd* entry = ::getpwuid(::geteuid()); home.empty() && entry != nullptr) home = entry->pw_dir;
  if (home.empty())
    throw Error(ErrorKind::config, "there is no folder for builds; set SYSLAB_BUILDS to one of your own");
  return fs::path(home) / ".cache" / "syslab" / "builds";
}

std::uint64_t limit_of_cache() {
  const std::string said = environment_variable("SYSLAB_BUILDS_LIMIT");
  if (said.empty()) return kLimit;
  const auto bytes = parse_bytes(said);
  if (!bytes) throw Error(ErrorKind::config, fmt::format("SYSLAB_BUILDS_LIMIT '{}' is no size such as 4Gi", said));
  return *bytes;
}

std::uint64_t size_of(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (at->is_regular_file(gone) && !at->is_symlink(gone)) bytes += at->file_size(gone);
  }
  return bytes;
}

// The last words of a build that failed: compilers end with what stopped them.
std::string last_line(const fs::path& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!trim(line).empty()) last = trim(line);
  }
  return last.substr(0, 200);
}

// The longest that one build may take, or the wait for somebody else's.
Nanoseconds limit_of_a_build() {
  const std::string said = environment_variable("SYSLAB_BUILDS_TIMEOUT");
  if (said.empty()) return kLongest;
  const auto time = parse_duration(said);
  if (!time || time->count() <= 0) {
    throw Error(ErrorKind::config, fmt::format("SYSLAB_BUILDS_TIMEOUT '{}' is no duration such as 45m", said));
  }
  return *time;
}

[[noreturn]] void refuse_folder(const fs::path& folder, const std::string& why) {
  throw Error(ErrorKind::config, fmt::format("the folder '{}' for builds cannot be made ({}); SYSLAB_BUILDS says where "
                                             "else",
                                             folder.string(), why));
}

// Programs that will be run lie in it: nobody else may have made it, or write there.
void make_own(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (error) refuse_folder(folder, error.message());
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) refuse_folder(folder, std::strerror(errno));
  struct stat found {};
  const bool ours = ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
                    (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (!ours) {
    throw Error(ErrorKind::config,
                fmt::format("builds are run from '{}', which is no folder that you alone can enter: `chmod 700` it if "
                            "it is yours, or set SYSLAB_BUILDS to another",
                            folder.string()));
  }
}

// The commit that was built there to its end; empty: none.
std::string done_in(const fs::path& build) {
  std::string commit;
  std::ifstream(build / kDone) >> commit;
  return commit;
}

// Nothing where another process holds it and `how` does not wait.
FileDescriptor locked(const fs::path& file, int how) {
  FileDescriptor lock(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), how) != 0) {
    if (lock && errno == EWOULDBLOCK) return {};
    throw_errno(ErrorKind::config, fmt::format("lock '{}'", file.string()), errno, "flock");
  }
  return lock;
}

bool is_digest(const std::string& text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Beside the build, so that it outlives it: each process that may run the build holds it shared, who removes it alone.
fs::path use_of(const fs::path& build) { return build.string() + ".lock"; }

// What this process has asked for: it will run it.
std::map<fs::path, FileDescriptor>& in_use() {
  static std::map<fs::path, FileDescriptor> builds;
  return builds;
}

// A line that is written over on a terminal; elsewhere only what begins.
class BuildProgress {
 public:
  BuildProgress(const Console& console, std::string what) : console_(console), what_(std::move(what)) {
    if (!live()) console_.note("building " + what_);
  }
  ~BuildProgress() {
    if (live()) to_error("\r\033[K");
  }
  BuildProgress(const BuildProgress&) = delete;
  BuildProgress& operator=(const BuildProgress&) = delete;
  void tick() {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    if (live()) to_error(fmt::format("\r\033[Kbuilding {}: {}", what_, format_seconds(seconds)));
  }

 private:
  bool live() const { return console_.error_is_terminal() && !console_.quiet(); }
  const Console& console_;
  std::string what_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

BuildRecipe recipe_of_syslab(const std::string& repository) {
  return {repository,
          "test -f build/build.ninja || meson setup build -Dunity=on -Dunity_size=8; exec ninja -C build syslab",
          "build/syslab"};
}

KeptBuilds::KeptBuilds(const Console& console, BuildRecipe recipe)
    : console_(console),
      recipe_(std::move(recipe)),
      key_(sha256_hex(recipe_.repository + '\0' + recipe_.command + '\0' + recipe_.artifact).substr(0, 12)),
      root_(cache_folder()),
      folder_(root_ / key_),
      limit_(limit_of_cache()),
      longest_(limit_of_a_build()) {
  make_own(root_);
  std::error_code error;
  fs::create_directory(folder_, error);
  if (error) refuse_folder(folder_, error.message());
}

Built KeptBuilds::build(const std::string& commit, std::optional<Clock::time_point> end) {
  if (const auto known = known_.find(commit); known != known_.end()) return known->second;
  Limit limit{Clock::now() + longest_, end, {}};
  Built built{commit, {}, {}};
  const FileDescriptor lock = await_turn(limit, built);
  if (!lock) return built;
  limit.longest = Clock::now() + longest_;  // the wait was another's time
  const fs::path kept = folder_ / commit;
  std::error_code error;
  fs::last_write_time(folder_ / kLock, fs::file_time_type::clock::now(), error);  // when its checkout was used last
  if (!in_use().contains(kept)) in_use().emplace(kept, locked(use_of(kept), LOCK_SH));
  if (done_in(kept) == commit) {
    fs::last_write_time(kept / kDone, fs::file_time_type::clock::now(), error);
    built = {commit, (kept / (recipe_.artifact.empty() ? kTree : fs::path(recipe_.artifact).filename())).string(), {}};
  } else {
    built = make(commit, kept, limit);
  }
  if (!built.interrupted && !built.late) known_[commit] = built;
  return built;
}

// Of one recipe, one process builds at a time. Nothing: `built` says why.
FileDescriptor KeptBuilds::await_turn(const Limit& limit, Built& built) const {
  const runner::Interruption interruption;
  for (bool told = false;; told = true) {
    if (FileDescriptor lock = locked(folder_ / kLock, LOCK_EX | LOCK_NB)) return lock;
    if (!told) console_.note("another process builds this history; waiting for it");
    if (interruption.signal() != 0) {
      built.interrupted = true;
      built.failed = "interrupted while another process built";
      return {};
    }
    if (limit.is_spent()) {
      built.late = true;
      built.failed = "time is over, and another process still builds";
      return {};
    }
    if (limit.is_over()) {
      throw Error(ErrorKind::config,
                  fmt::format("another process has been building in '{}' for {}; end it, or say a longer "
                              "SYSLAB_BUILDS_TIMEOUT",
                              folder_.string(), format_seconds(Seconds(longest_).count())));
    }
    std::this_thread::sleep_for(kGlance);
  }
}

Built KeptBuilds::make(const std::string& commit, const fs::path& kept, Limit limit) {
  std::error_code error;
  fs::create_directories(kept, error);
  const bool whole = recipe_.artifact.empty();
  const fs::path tree = (whole ? kept : folder_) / kTree, log = kept / "log";
  Built built{commit, {}, {}};
  BuildProgress progress(
      console_, fmt::format("{} {}", short_commit(commit), subject_of(recipe_.repository, commit).substr(0, 60)));
  limit.tick = [&] { progress.tick(); };
  check_out(built, tree, log, limit);
  if (built.failed.empty()) {
    if (!whole) fs::remove(tree / recipe_.artifact, error);  // what is kept was made now, or is not there
    if (!recipe_.command.empty()) run_command(built, tree, log, limit);
  }
  if (!built.failed.empty()) {
    const bool goes_on = built.late || built.interrupted;  // the next call, in what is there
    if (whole && !goes_on) remove_tree(tree.string());     // only why it failed is kept
    if (goes_on) in_use().erase(kept);                     // as long as there is room: nobody runs it
    make_room();
    return built;
  }
  if (whole) {
    built.path = tree.string();
  } else {
    const fs::path made = tree / recipe_.artifact, copy = kept / made.filename();
    if (!fs::is_regular_file(made, error)) {
      built.failed = fmt::format("it built, and made no '{}'", recipe_.artifact);
      return built;
    }
    fs::copy_file(made, copy.string() + ".new", fs::copy_options::overwrite_existing, error);
    if (!error) fs::rename(copy.string() + ".new", copy, error);
    if (error) throw Error(ErrorKind::config, fmt::format("'{}' cannot be kept: {}", copy.string(), error.message()));
    built.path = copy.string();
  }
  if (!(std::ofstream(kept / kDone) << commit << std::endl)) {
    throw Error(ErrorKind::config, fmt::format("'{}' cannot be written: is the disk full?", (kept / kDone).string()));
  }
  make_room();
  return built;
}

// A checkout that did not end leaves what git stumbles over: then it is made anew.
void KeptBuilds::check_out(Built& built, const fs::path& tree, const fs::path& log, const Limit& limit) {
  std::error_code error;
  const auto git = [&](const std::string& folder, const std::vector<std::string>& command) {
    built.failed.clear();
    std::vector<std::string> words = git_command(folder, command);
    words.insert(words.begin(), {"sh", "-c", "exec \"$@\" >\"$0\" 2>&1", log.string()});
    run(built, std::move(words), log, limit, "cannot be checked out");
    return built.failed.empty() || built.interrupted || built.late;
  };
  if (fs::exists(tree / ".git", error) &&
      git(tree.string(), {"checkout", "--quiet", "--force", "--detach", built.commit})) {
    return;
  }
  if (fs::exists(tree, error)) remove_tree(tree.string());
  output_of(git_command(recipe_.repository, {"worktree", "prune"}));
  if (!git(recipe_.repository, {"worktree", "add", "--quiet", "--force", "--detach", tree.string(), built.commit})) {
    const bool is_partial =
        look_into(recipe_.repository, {"config", "--get-regexp", R"(^remote\..*\.promisor$)"}).has_value();
    throw Error(ErrorKind::config,
                fmt::format("revision {} {}{}", short_commit(built.commit), built.failed,
                            is_partial ? fmt::format("; in this partial clone nothing is fetched here\n"
                                                     "try: git -C {} checkout {}, which fetches its files",
                                                     recipe_.repository, short_commit(built.commit))
                                       : ""));
  }
}

void KeptBuilds::run_command(Built& built, const fs::path& tree, const fs::path& log, const Limit& limit) {
  run(built,
      {"sh", "-c", "cd \"$1\" && exec sh -c \"$2\" >\"$3\" 2>&1", "sh", tree.string(), recipe_.command, log.string()},
      log, limit, "does not build");
}

void KeptBuilds::run(Built& built, std::vector<std::string> argv, const fs::path& log, const Limit& limit,
                     const char* failure) {
  SpawnOptions options;
  options.argv = std::move(argv);
  options.environment = {{"SYSLAB_REVISION", built.commit}};
  options.capture_stderr = false;
  const runner::Interruption interruption;
  Process build = Process::spawn(options);
  build.close_input();
  const auto stop = [&](std::string why) {
    build.kill_group(SIGTERM);  // git then removes its locks
    for (int i = 0; i < 10 && !build.poll(); ++i) std::this_thread::sleep_for(kGlance);
    build.kill_group(SIGKILL);
    build.wait();
    built.failed = std::move(why);
  };
  for (;;) {
    if (const auto ended = build.poll()) {
      if (!ended->signalled && ended->code == 0) return;
      const std::string last = last_line(log);
      built.failed =
          fmt::format("{} ({}{}{}; {})", failure, ended->describe(), last.empty() ? "" : ": ", last, log.string());
      return;
    }
    if (interruption.signal() != 0) {
      built.interrupted = true;
      return stop("interrupted while it was built");
    }
    if (limit.is_spent()) {
      built.late = true;
      return stop("time was over while it was built");
    }
    if (limit.is_over()) {
      return stop(fmt::format("takes longer than {} to build (SYSLAB_BUILDS_TIMEOUT; {})",
                              format_seconds(Seconds(longest_).count()), log.string()));
    }
    std::this_thread::sleep_for(kGlance);
    limit.tick();
  }
}

// Of one recipe: its builds, those that did not end, and the checkout in which it builds. A lock that can be had alone
// says that nobody is there.
std::vector<KeptBuilds::Entry> KeptBuilds::entries_of(const fs::path& recipe) {
  std::vector<Entry> entries;
  std::error_code ignored;
  const auto add = [&](const fs::path& folder, const fs::path& lock, const fs::path& touched) {
    std::error_code error;
    const auto used = fs::last_write_time(touched, error);
    if (!error) entries.push_back({folder, lock, used, size_of(folder)});
  };
  if (!is_digest(recipe.filename().string(), key_.size())) return entries;
  for (const auto& one : fs::directory_iterator(recipe, ignored)) {
    const std::string name = one.path().filename().string();
    if (name == kTree) add(one.path(), recipe / kLock, recipe / kLock);
    if (!is_digest(name, 40) && !is_digest(name, 64)) continue;
    std::error_code error;
    const bool done = fs::exists(one.path() / kDone, error);
    if (done && done_in(one.path()) != name) continue;
    add(one.path(), use_of(one.path()), done ? one.path() / kDone : one.path());
  }
  return entries;
}

void KeptBuilds::make_room() {
  std::vector<Entry> entries;
  std::error_code error;
  const std::uint64_t all = size_of(root_);
  if (all <= limit_) return;
  for (const auto& recipe : fs::directory_iterator(root_, error)) {
    for (Entry& entry : entries_of(recipe.path())) entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &Entry::used);
  std::uint64_t left = all;
  for (const Entry& entry : entries) {
    if (left <= limit_) break;
    const FileDescriptor alone = locked(entry.lock, LOCK_EX | LOCK_NB);
    if (!alone) continue;                     // somebody may run it
    fs::remove(entry.folder / kDone, error);  // first: what is removed in part is no build
    if (remove_tree(entry.folder.string())) left -= std::min(left, entry.bytes);
  }
}

}  // namespace syslab::cli
