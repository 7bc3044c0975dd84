#include "worker/judged/walled_python.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "judge/private_folder.hpp"
#include "judge/walls.hpp"

namespace syslab::worker {

// A look at a file takes little; it knows no --memory-limit.
constexpr std::uint64_t kMostSharedMemory = std::uint64_t{256} << 20;

namespace {

using Clock = std::chrono::steady_clock;

// Whether there is more to read, or its end, by then.
bool says_more(const Process& process, Clock::time_point until) {
  struct pollfd wait {
    process.from_child(), POLLIN, 0
  };
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    const auto most = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
    if (::poll(&wait, 1, most) > 0) return true;
    if (left <= 0) return false;
  }
}

std::optional<ExitStatus> ended(Process& process, Clock::time_point until) {
  constexpr std::chrono::milliseconds kLook{2};
  while (Clock::now() < until) {
    if (const std::optional<ExitStatus> exit = process.poll()) return exit;
    std::this_thread::sleep_for(kLook);
  }
  return std::nullopt;
}

}  // namespace

PythonAnswer ask_python(std::vector<std::string> argv, std::size_t most_bytes,
                        std::optional<std::chrono::milliseconds> patience) {
  constexpr std::chrono::hours kAlways{24 * 365};
  const Clock::time_point until = Clock::now() + patience.value_or(kAlways);
  std::optional<judge::PrivateFolder> folder;
  std::optional<judge::Walls> walls;
  SpawnOptions options;
  options.argv = std::move(argv);
  options.capture_stderr = false;
  if (judge::walls_wanted()) {
    folder.emplace();
    walls.emplace(judge::WallsOptions{.profile = judge::Profile::python,
                                      .memory_limit_bytes = kMostSharedMemory,
                                      .writable = folder->path(),
                                      .hidden = judge::keys_folders()});
    judge::hide_this_process();
    options.environment = folder->environment();
    options.confinement = walls->confinement();
  }
  for (const auto& [name, value] : judge::withheld_variables()) options.environment.insert_or_assign(name, value);
  Process process = Process::spawn(options);
  process.close_input();
  PythonAnswer answer;
  std::array<char, 4096> chunk;
  while (!answer.is_cut && says_more(process, until)) {
    const ssize_t got = ::read(process.from_child(), chunk.data(), chunk.size());
    if (got <= 0) break;
    answer.output.append(chunk.data(), static_cast<std::size_t>(got));
    answer.is_cut = answer.output.size() > most_bytes;
  }
  if (answer.is_cut) return answer;
  const std::optional<ExitStatus> exit = ended(process, until);
  answer.is_cut = !exit;
  answer.exit = exit.value_or(ExitStatus{});
  return answer;
}

}  // namespace syslab::worker
