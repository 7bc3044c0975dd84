#include "worker/own_program.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/pipe.hpp"
#include "core/process.hpp"
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

// What it prints to both, until it closes them or ends: whoever it has left behind may hold them open.
std::string read_all(Process& process, TailReader& errors) {
  std::string output;
  std::array<char, 65536> chunk{};
  bool open = true, errors_open = true;
  while (open || errors_open) {
    std::array<pollfd, 2> both{
        {{open ? process.from_child() : -1, POLLIN, 0}, {errors_open ? process.error_output() : -1, POLLIN, 0}}};
    constexpr int kLookAgain = 50;  // ms
    const int ready = ::poll(both.data(), both.size(), kLookAgain);
    if (ready == 0 && process.poll()) return output;
    if (both[0].revents != 0) {
      const ssize_t got = ::read(process.from_child(), chunk.data(), chunk.size());
      if (got > 0) output.append(chunk.data(), static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR)) open = false;
      if (output.size() > kMostOutput) {
        throw Error(ErrorKind::usage, "the command prints more than 16 MiB; send what nobody reads elsewhere");
      }
    }
    if (both[1].revents != 0) errors_open = errors.drain();
  }
  return output;
}

}  // namespace

OwnProgram::OwnProgram(const CommandPlace& place, const Params& params) : folder_(place.folder) {
  for (const std::string& word : command_words(place.command)) words_.push_back(filled(word, params));
  if (!judge::walls_wanted()) return;
  std::error_code none;
  const bool gpu = fs::exists("/dev/nvidiactl", none);
  writable_.emplace();
  walls_.emplace(judge::WallsOptions{
      .profile = judge::Profile::python, .gpu = gpu, .writable = writable_->path(), .hidden = judge::keys_folder()});
  judge::hide_this_process();
}

OwnProgram::Ended OwnProgram::run() {
  SpawnOptions options;
  options.argv = words_;
  if (walls_) {
    options.environment = writable_->environment();
    options.confinement = walls_->confinement();
  }
  options.environment.insert_or_assign("SYSLAB_LAUNCH_SECRET", "");
  const InFolder in(folder_);
  const Nanoseconds began = measure::steady_clock().now();
  Process process = Process::spawn(options);
  process.close_input();
  TailReader errors(process.error_output());
  Ended ended;
  ended.output = read_all(process, errors);
  const ExitStatus exit = process.wait();
  ended.took = measure::steady_clock().now() - began;
  if (!exit.signalled && exit.code == 0) return ended;
  const std::string said = errors.last_lines(1);
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
