#include "submission/script.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/process/pipe.hpp"
#include "judge/walls.hpp"

namespace syslab::submission {
namespace {

constexpr std::size_t kMostOutput = 1 << 20;
constexpr std::int64_t kTickMs = 100;

}  // namespace

ScriptOutput run_script(std::vector<std::string> command, std::chrono::milliseconds timeout,
                        const Confinement* confinement, std::map<std::string, std::string> environment,
                        std::uint64_t memory_limit_bytes) {
  SpawnOptions spawn;
  spawn.argv = std::move(command);
  spawn.environment = std::move(environment);
  for (const auto& [name, value] : judge::withheld_variables()) spawn.environment.insert_or_assign(name, value);
  spawn.memory_limit_bytes = memory_limit_bytes;
  spawn.confinement = confinement;
  Process process = Process::spawn(spawn);
  process.close_input();
  TailReader errors(process.error_output());
  ScriptOutput done;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  bool output_open = true, errors_open = true;
  // Something that it started may hold its pipes: its own end is what counts.
  while (true) {
    const bool ended = process.poll().has_value();
    std::array<struct pollfd, 2> wait{
        {{output_open ? process.from_child() : -1, POLLIN, 0}, {errors_open ? process.error_output() : -1, POLLIN, 0}}};
    const int ready = ::poll(wait.data(), wait.size(), ended ? 0 : static_cast<int>(kTickMs));
    if (ready < 0 && errno != EINTR) break;
    if (ready > 0 && wait[1].revents != 0) errors_open = errors.drain();
    if (ready > 0 && wait[0].revents != 0) {
      std::array<char, 4096> chunk;
      const ssize_t got = ::read(process.from_child(), chunk.data(), chunk.size());
      if (got == 0) output_open = false;
      if (got > 0) {
        const std::size_t room = kMostOutput - std::min(kMostOutput, done.output.size());
        done.output.append(chunk.data(), std::min(room, static_cast<std::size_t>(got)));
      }
    } else if (ended) {
      break;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      done.timed_out = true;
      process.kill_group(SIGKILL);
      break;
    }
  }
  done.ended = process.wait();
  done.errors = errors.last_lines(3);
  return done;
}

}  // namespace syslab::submission
