#include "grade/batch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/json_text.hpp"
#include "core/process.hpp"
#include "core/temporary_folder.hpp"
#include "core/text.hpp"
#include "core/user_file.hpp"
#include "grade/record.hpp"
#include "grade/suspicions.hpp"
#include "submission/folder.hpp"
#include "worker/python_probe.hpp"

namespace syslab::grade {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::uintmax_t kMostFiles = 10'000, kMostBytes = std::uintmax_t{1} << 30;  // of a folder, as of a zip
constexpr std::uint64_t kMostOutput = 64U << 20;
constexpr milliseconds kTick{50}, kLeaving{3000};

// What people and tools leave beside the code. An environment is never taken: its interpreter would run unwatched.
bool is_left_out(const fs::path& name) {
  static const std::set<std::string> kLeftOut{".git", ".venv", "venv", "__pycache__", ".pytest_cache", "node_modules"};
  return kLeftOut.contains(name.string());
}

void copy_folder(const fs::path& from, const fs::path& to) {
  std::uintmax_t files = 0, bytes = 0;
  for (fs::recursive_directory_iterator entry(from), end; entry != end; ++entry) {
    const fs::path relative = entry->path().lexically_relative(from);
    if (is_left_out(relative.filename())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_symlink()) throw Error(ErrorKind::usage, fmt::format("'{}' is a symbolic link", relative.string()));
    if (entry->is_directory()) {
      fs::create_directories(to / relative);
    } else if (!entry->is_regular_file()) {
      throw Error(ErrorKind::usage, fmt::format("'{}' is neither a file nor a folder", relative.string()));
    } else {
      bytes += entry->file_size();
      if (++files > kMostFiles || bytes > kMostBytes) {
        throw Error(ErrorKind::usage, fmt::format("it has more than {} files or {} MB", kMostFiles, kMostBytes >> 20));
      }
      fs::copy_file(entry->path(), to / relative);
    }
  }
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

// The last line of `check --json`, which is the submission's record.
Json last_record(const fs::path& file) {
  const std::string text = read_user_file(file, kMostOutput);
  std::string last;
  for (const std::string& line : split(text, '\n')) {
    if (!trim(line).empty()) last = line;
  }
  return json_or_discarded(last);
}

Submission handed_in(const fs::path& path) {
  const std::string name = (path.extension() == ".zip" ? path.stem() : path.filename()).string();
  const std::size_t at = name.rfind('@');
  if (at == 0 || at == std::string::npos) return {.id = submission::name_of(path), .path = path};
  return {
      .id = submission::name_of(path.parent_path() / name.substr(0, at)), .path = path, .when = name.substr(at + 1)};
}

class Grading {
 public:
  Grading(const BatchOptions& options, const fs::path& temporary)
      : options_(options),
        temporary_(temporary),
        hidden_(fs::canonical(options.submissions).string() + ":" + fs::canonical(options.output).string() + ":" +
                fs::canonical(temporary).string()) {}

  Json check(const Submission& submission, bool& known) {
    const fs::path own = temporary_ / submission.id;
    try {
      const std::string key = key_of(prepare(submission, own));
      const fs::path kept = options_.output / ".work" / (submission.id + ".json");
      Json record = known_record(kept, key);
      known = !record.is_null();
      if (!known) {
        Json suspicions = suspicious(own);  // before anything of it runs
        record = run(own);
        record["suspicions"] = std::move(suspicions);
        FileInMaking(kept, json_text(Json{{"key", key}, {"record", record}})).place();
      }
      clear(own);
      return record;
    } catch (const Error& error) {
      clear(own);
      if (error.kind() == ErrorKind::internal) throw;
      return {{"error", first_line(error.what())}};
    } catch (const fs::filesystem_error& error) {
      clear(own);
      return {{"error", fmt::format("it cannot be read: {}", error.code().message())}};
    }
  }

 private:
  // A copy of its own, and what identifies it.
  std::string prepare(const Submission& submission, const fs::path& own) const {
    fs::create_directories(own / "code");
    fs::create_directories(own / "tmp");
    if (fs::is_directory(submission.path)) {
      copy_folder(submission.path, own / "code");
    } else {
      submission::unpack(submission.path, own / "code");
      remove_environments(own / "code");
    }
    try {
      return submission::Folder(own / "code").digest();
    } catch (const Error& error) {  // names it as it was handed in
      std::string text = error.what();
      const std::string here = (own / "code").string(), there = submission.path.filename().string();
      for (std::size_t at = 0; (at = text.find(here, at)) != std::string::npos; at += there.size()) {
        text.replace(at, here.size(), there);
      }
      throw Error(error.kind(), text);
    }
  }

  static Json suspicious(const fs::path& own) {
    Json list = Json::array();
    for (const Suspicion& one : suspicions_in(own / "code")) {
      list.push_back({{"file", one.file}, {"line", one.line}, {"why", one.why}, {"text", one.text}});
    }
    return parse_json(repaired_json_text(list));  // a source may be in any encoding
  }

  static void clear(const fs::path& own) {
    std::error_code ignored;
    fs::remove_all(own, ignored);
  }

  std::string key_of(const std::string& digest) const {
    const BuildInfo& build = build_info();
    return sha256_hex(fmt::format("{} {} {} {} {} {} {} {} {} {} {}", digest, options_.handout,
                                  fmt::join(options_.experiments, ","), options_.seed, options_.cases, options_.timeout,
                                  options_.memory_limit, options_.limit.count(), worker::python_interpreter(),
                                  build.git_sha, build.git_diff));
  }

  static Json known_record(const fs::path& kept, const std::string& key) {
    std::error_code none;
    if (!fs::exists(kept, none)) return nullptr;
    const Json stored = json_or_discarded(read_user_file(kept, kMostOutput));
    if (!stored.is_object() || stored.value("key", "") != key) return nullptr;
    return stored.value("record", Json());
  }

  std::vector<std::string> command(const fs::path& own) const {
    std::vector<std::string> words{"/proc/self/exe",
                                   "check",
                                   "--json",
                                   "--handout",
                                   options_.handout,
                                   "--mine",
                                   "me=" + (own / "code").string(),
                                   "--python",
                                   worker::python_interpreter(),
                                   "--cases",
                                   std::to_string(options_.cases),
                                   "--seed",
                                   std::to_string(options_.seed),
                                   "--timeout",
                                   options_.timeout,
                                   "--db",
                                   (own / "lab.db").string()};
    words.insert(words.begin() + 2, options_.experiments.begin(), options_.experiments.end());
    if (!options_.memory_limit.empty()) words.insert(words.end(), {"--memory-limit", options_.memory_limit});
    return words;
  }

  Json run(const fs::path& own) const {
    const FileDescriptor input = open_file("/dev/null", O_RDONLY);
    const FileDescriptor output = open_file(own / "output", O_WRONLY | O_CREAT | O_TRUNC);
    const FileDescriptor errors = open_file(own / "errors", O_WRONLY | O_CREAT | O_TRUNC);
    SpawnOptions spawn;
    spawn.argv = command(own);
    spawn.streams = {input.get(), output.get(), errors.get()};
    spawn.environment = {{"TMPDIR", (own / "tmp").string()},
                         {"OMP_NUM_THREADS", "1"},
                         {"SYSLAB_WALLS_HIDE", hidden_},
                         {"SYSLAB_WALLS_SHOW", (own / "code").string()}};
    Process process = Process::spawn(spawn);
    const auto deadline = std::chrono::steady_clock::now() + options_.limit;
    std::optional<ExitStatus> ended;
    while (!(ended = process.poll()) && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(kTick);
    if (!ended) {
      process.kill_group(SIGTERM);
      const auto patience = std::chrono::steady_clock::now() + kLeaving;
      while (!process.poll() && std::chrono::steady_clock::now() < patience) std::this_thread::sleep_for(kTick);
      process.kill_group(SIGKILL);
      process.wait();
      return {{"error", fmt::format("it was not checked within {} s and was stopped",
                                    std::chrono::duration<double>(options_.limit).count())}};
    }
    Json record = last_record(own / "output");
    if (record.is_object() && record.value("type", "") == "submission") return record;
    if (record.is_object() && record.contains("error") && record["error"].is_object()) {
      return {{"error", first_line(record["error"].value("message", ""))}};
    }
    return {{"error", fmt::format("the check ended without an answer ({})", ended->describe())}};
  }

  const BatchOptions& options_;
  fs::path temporary_;
  std::string hidden_;
};

}  // namespace

std::vector<Submission> submissions_in(const fs::path& folder) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) {
    throw Error(ErrorKind::usage, fmt::format("'{}' is no folder of submissions", folder.string()));
  }
  std::vector<Submission> found;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    const fs::path& path = entry->path();
    if (path.filename().string().starts_with(".") || entry->is_symlink(none)) continue;
    if (submission::is_submission(path)) found.push_back(handed_in(path));
  }
  const auto who_and_when = [](const Submission& one) { return std::pair(one.id, one.when); };
  std::ranges::sort(found, {}, who_and_when);
  const auto twice = std::ranges::adjacent_find(found, {}, who_and_when);
  if (twice != found.end()) {
    throw Error(ErrorKind::usage,
                fmt::format("'{}' and '{}' would both be called {}; rename one", twice->path.filename().string(),
                            std::next(twice)->path.filename().string(), twice->id));
  }
  if (found.empty()) {
    throw Error(ErrorKind::usage, fmt::format("'{}' holds neither folders nor zips", folder.string()));
  }
  std::vector<Submission> newest;
  for (Submission& one : found) {
    if (!newest.empty() && newest.back().id == one.id) {
      one.earlier = newest.back().earlier + 1;
      newest.back() = std::move(one);
    } else {
      newest.push_back(std::move(one));
    }
  }
  return newest;
}

std::vector<Json> check_all(const std::vector<Submission>& submissions, const BatchOptions& options) {
  const TemporaryFolder temporary;
  Grading grading(options, temporary.path());
  std::vector<Json> records(submissions.size());
  std::atomic<std::size_t> next = 0;
  std::mutex one_at_a_time;
  std::exception_ptr failed;
  const auto work = [&] {
    for (std::size_t i = next++; i < submissions.size(); i = next++) {
      try {
        bool known = false;
        Json record = grading.check(submissions[i], known);
        const std::lock_guard lock(one_at_a_time);
        if (options.ended) options.ended(submissions[i], record, known);
        records[i] = std::move(record);
      } catch (...) {
        const std::lock_guard lock(one_at_a_time);
        if (!failed) failed = std::current_exception();
        next = submissions.size();
      }
    }
  };
  std::vector<std::jthread> workers;
  const auto jobs = std::min(submissions.size(), static_cast<std::size_t>(std::max(1, options.jobs)));
  for (std::size_t i = 1; i < jobs; ++i) workers.emplace_back(work);
  work();
  workers.clear();
  if (failed) std::rethrow_exception(failed);
  return records;
}

}  // namespace syslab::grade
