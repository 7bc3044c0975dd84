#include "experiments/selftest/scratch_lab.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/process/process_stat.hpp"
#include "core/text/json_text.hpp"

namespace syslab::selftest {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kLongestRun = 120s;
constexpr auto kPlanting = 10s;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Every number that /proc shows.
std::vector<pid_t> all_processes() {
  std::vector<pid_t> all;
  std::error_code failed;
  for (fs::directory_iterator it("/proc", failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (wrong == std::errc() && rest == name.data() + name.size()) all.push_back(pid);
  }
  return all;
}

}  // namespace

std::optional<std::string> Lines::next(Clock::time_point deadline) {
  while (true) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (ended_) return std::nullopt;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{fd_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    std::array<char, 1 << 16> bytes{};
    const ssize_t got = ::read(fd_, bytes.data(), bytes.size());
    if (got <= 0) {
      ended_ = true;
    } else {
      buffer_.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }
}

ScratchLab::ScratchLab() {
  std::error_code failed;
  program_ = fs::read_symlink("/proc/self/exe", failed).string();
  if (failed || text_of("/proc/self/environ").empty()) {
    throw Unsupported("needs /proc, by which this program finds itself and the processes that it starts");
  }
  temporary_ = folder_.path() + "/temporary";
  fs::create_directory(temporary_);
  start_afresh();
  const Finished first = run({"run", "selftest_empty"});
  if (first.exit.signalled || first.exit.code != 0) {
    throw Unsupported(fmt::format("needs a lab of its own, and `{} run selftest_empty` in one ended with {}", program_,
                                  first.exit.describe()));
  }
  start_afresh();
}

void ScratchLab::start_afresh() { database_ = fmt::format("{}/{}.db", folder_.path(), databases_++); }

std::vector<std::string> ScratchLab::command(const std::vector<std::string>& arguments,
                                             const std::vector<std::string>& variables) const {
  // _SYSLAB_KEPT_BY: so that all this ends with the lab that runs this case.
  std::vector<std::string> all{"env", "-i", "TMPDIR=" + temporary_, "XDG_STATE_HOME=" + folder_.path() + "/state"};
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "_SYSLAB_KEPT_BY", "ASAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name); value != nullptr) all.push_back(fmt::format("{}={}", name, value));
  }
  all.insert(all.end(), variables.begin(), variables.end());
  all.push_back(program_);
  all.insert(all.end(), arguments.begin(), arguments.end());
  all.insert(all.end(), {"--db", database_});
  return all;
}

Running ScratchLab::start(std::vector<std::string> arguments, const std::vector<std::string>& variables) const {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(ErrorKind::internal, "make a pipe", errno, "pipe2");
  FileDescriptor read(ends[0]);
  const FileDescriptor write(ends[1]);
  const FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  SpawnOptions options;
  options.argv = command(arguments, variables);
  options.streams = {nothing.get(), write.get(), nothing.get()};
  try {
    return {Process::spawn(options), std::move(read)};
  } catch (const Error& error) {
    throw Unsupported(fmt::format("needs to start processes: {}", error.what()));
  }
}

Finished ScratchLab::run(std::vector<std::string> arguments, const std::vector<std::string>& variables) const {
  Running running = start(std::move(arguments), variables);
  Finished finished;
  Lines lines(running.output.get());
  const auto deadline = Clock::now() + kLongestRun;
  while (auto line = lines.next(deadline)) finished.lines.push_back(std::move(*line));
  if (!lines.ended()) running.process.kill_group(SIGKILL);
  finished.exit = running.process.wait();
  return finished;
}

std::vector<pid_t> ScratchLab::processes() const {
  const std::string mark = "TMPDIR=" + temporary_ + '\0';
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    // That of a zombie is empty.
    if (text_of(fmt::format("/proc/{}/environ", pid)).find(mark) != std::string::npos) found.push_back(pid);
  }
  return found;
}

int ScratchLab::processes_left(std::chrono::milliseconds patience) const {
  const auto deadline = Clock::now() + patience;
  std::vector<pid_t> left = processes();
  while (!left.empty() && Clock::now() < deadline) {
    std::this_thread::sleep_for(2ms);
    left = processes();
  }
  for (const pid_t pid : left) ::kill(pid, SIGKILL);
  return static_cast<int>(left.size());
}

int ScratchLab::files_left() const {
  int left = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(temporary_)) {
    fs::remove_all(entry.path());
    ++left;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) {
    const std::string name = entry.path().filename().string();
    const bool database = name.ends_with(".db") || name.ends_with(".db-wal") || name.ends_with(".db-shm");
    if (database || name == "state" || name == "temporary") continue;
    fs::remove_all(entry.path());
    ++left;
  }
  return left;
}

void ScratchLab::plant_file() const { std::ofstream(temporary_ + "/planted") << "left\n"; }

Process ScratchLab::plant_process() const {
  SpawnOptions options;
  options.argv = {"sleep", "300"};
  options.environment = {{"TMPDIR", temporary_}};
  Process planted = Process::spawn(options);
  // While the kernel starts a program it shows no environment: only what can be found is planted.
  const auto deadline = Clock::now() + kPlanting;
  for (std::vector<pid_t> seen = processes(); std::find(seen.begin(), seen.end(), planted.pid()) == seen.end();
       seen = processes()) {
    if (Clock::now() > deadline) throw Unsupported("needs to see the environment of what it starts, in /proc");
    std::this_thread::sleep_for(2ms);
  }
  return planted;
}

void reap_orphans() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

std::vector<pid_t> workers_of(pid_t lab) {
  std::vector<std::pair<std::uint64_t, pid_t>> found;
  // Not /proc/PID/task/TID/children: it leaves out living ones where another ends while it is read (proc(5)).
  for (const pid_t pid : all_processes()) {
    const auto stat = process_stat(pid);
    if (!stat || stat->parent != lab || !stat->runs()) continue;
    const std::string arguments = text_of(fmt::format("/proc/{}/cmdline", pid));
    // While the kernel starts its program, a process shows no arguments; the next rank may be there before it does.
    if (arguments.empty()) return {};
    if (arguments.ends_with(std::string("\0worker\0", 8))) found.emplace_back(stat->start_ticks, pid);
  }
  std::sort(found.begin(), found.end());
  std::vector<pid_t> workers;
  for (const auto& [start, pid] : found) workers.push_back(pid);
  return workers;
}

std::optional<Json> attempt_of(const std::string& line) {
  Json json = json_or_discarded(line);
  if (!json.is_object() || json.value("type", "") != "attempt") return std::nullopt;
  return json;
}

}  // namespace syslab::selftest
