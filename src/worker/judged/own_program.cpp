#include "worker/judged/own_program.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "core/process/pipe.hpp"
#include "core/process/process.hpp"
#include "judge/private_folder.hpp"
#include "measure/clock.hpp"

namespace syslab::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOutput = 16U << 20;

// For the start of a program: where this process is otherwise.
class InFolder {
 public:
  explicit InFolder(const std::string& folder) : before_(fs::current_path()) {
    std::error_code failed;
    fs::current_path(folder, failed);
    if (failed) throw Error(ErrorKind::usage, fmt::format("the command starts in '{}': {}", folder, failed.message()));
  }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
  ~InFolder() {
    std::error_code ignored;
    fs::current_path(before_, ignored);
  }

 private:
  fs::path before_;
};

// What it prints, to both.
class Printed {
 public:
  explicit Printed(Process& process)
      : output_(process.from_child()), errors_output_(process.error_output()), errors_(errors_output_) {}

  // Until it closes both or ends: whoever it has left behind may hold them open.
  void read_until_end(Process& process) {
    const FileDescriptor end(static_cast<int>(::syscall(kPidfdOpen, process.pid(), 0U)));
    const int patience = end ? -1 : kLookAgain;
    while (open_ || errors_open_) {
      const bool quiet = !read_some(patience, end.get());
      // What has come until its end counts, be it that nobody had asked for it yet.
      if (ended_ || (quiet && process.poll())) {
        process.kill_group(SIGKILL);
        return read_what_is_there();
      }
    }
  }

  std::string text;
  std::string last_error_line() const { return errors_.last_lines(1); }

 private:
  static constexpr long kPidfdOpen = 434;  // of every architecture; kernels before 5.3 have none
  static constexpr int kLookAgain = 50;    // ms

  // Of those that are left behind, some may print without end.
  void read_what_is_there() {
    constexpr int kMostReads = 1024;
    for (int reads = 0; reads < kMostReads && read_some(0, -1); ++reads) continue;
  }

  // False: there was nothing.
  bool read_some(int patience, int end) {
    std::array<pollfd, 3> all{
        {{open_ ? output_ : -1, POLLIN, 0}, {errors_open_ ? errors_output_ : -1, POLLIN, 0}, {end, POLLIN, 0}}};
    const int ready = ::poll(all.data(), all.size(), patience);
    if (ready < 0) return errno == EINTR;
    if (all[0].revents != 0) {
      const ssize_t got = ::read(output_, chunk_.data(), chunk_.size());
      if (got > 0) text.append(chunk_.data(), static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) open_ = false;
      if (text.size() > kMostOutput) {
        throw Error(ErrorKind::usage, "the command prints more than 16 MiB; send what nobody reads elsewhere");
      }
    }
    if (all[1].revents != 0) errors_open_ = errors_.drain();
    ended_ = all[2].revents != 0;
    return ready > 0;
  }

  int output_, errors_output_;
  TailReader errors_;
  std::array<char, 65536> chunk_{};
  bool open_ = true, errors_open_ = true, ended_ = false;
};

}  // namespace

OwnProgram::OwnProgram(const CommandPlace& place, const Params& params, std::uint64_t memory_limit_bytes)
    : folder_(place.folder), memory_limit_bytes_(memory_limit_bytes) {
  for (const std::string& word : command_words(place.command)) words_.push_back(filled(word, params));
  if (!judge::walls_wanted()) return;
  std::error_code none;
  const bool gpu = fs::exists("/dev/nvidiactl", none);
  walls_.emplace(judge::WallsOptions{.profile = judge::Profile::python,
                                     .gpu = gpu,
                                     .listens = judge::under_compute_sanitizer(),
                                     .memory_limit_bytes = memory_limit_bytes,
                                     .hidden = judge::keys_folders()});
  judge::hide_this_process();
}

OwnProgram::Ended OwnProgram::run() {
  SpawnOptions options;
  options.argv = words_;
  options.memory_limit_bytes = memory_limit_bytes_;
  std::optional<judge::PrivateFolder> writable;
  if (walls_) {
    writable.emplace();
    walls_->write_to(writable->path());
    options.environment = writable->environment();
    options.confinement = walls_->confinement();
  }
  for (const auto& [name, value] : judge::withheld_variables()) options.environment.insert_or_assign(name, value);
  const InFolder in(folder_);
  const Nanoseconds began = measure::steady_clock().now();
  Process process = Process::spawn(options);
  process.close_input();
  Printed printed(process);
  printed.read_until_end(process);
  const Nanoseconds read = measure::steady_clock().now();
  const ExitStatus exit = process.wait();
  if (exit.left_alive) {
    throw Error(ErrorKind::usage,
                "the command left a process that cannot be killed; expected that it ends all it starts");
  }
  Ended ended;
  ended.took = std::max<Nanoseconds>(read, exit.ended.time_since_epoch()) - began;
  ended.output = std::move(printed.text);
  ended.left_running = exit.left_running;
  if (!exit.signalled && exit.code == 0) return ended;
  const std::string said = printed.last_error_line();
  throw Error(ErrorKind::usage,
              fmt::format("the command ended with {}{}{}", exit.describe(), said.empty() ? "" : ": ", said));
}

Json OwnProgram::walls_facts() const {
  Json facts{{"walls", walls_ ? "python" : "none"}};
  if (!walls_) return facts;
  if (const std::vector<std::string> missing = judge::missing_walls(true); !missing.empty())
    facts["walls_missing"] = missing;
  return facts;
}

}  // namespace syslab::worker
