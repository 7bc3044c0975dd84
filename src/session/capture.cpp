#include "session/capture.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "core/error.hpp"
#include "core/process/process.hpp"

namespace syslab::cli {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);
constexpr std::size_t kMost = 16 << 20;  // bytes

// Appends what can be read now to `text`. False at the end of the pipe.
bool read_some(int descriptor, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

// Reads both outputs to their ends; false if it took too long or was too much. Errors are read, too: a program stops
// when its error pipe is full and nobody reads it.
bool read_all(const Process& child, std::string& output) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string errors;
  std::array<pollfd, 2> pipes{pollfd{child.from_child(), POLLIN, 0}, pollfd{child.error_output(), POLLIN, 0}};
  std::array<std::string*, 2> texts{&output, &errors};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (::poll(pipes.data(), pipes.size(), static_cast<int>(milliseconds)) < 0 && errno != EINTR) return false;
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (pipes[i].fd < 0 || pipes[i].revents == 0) continue;
      if (!read_some(pipes[i].fd, *texts[i])) pipes[i].fd = -1;  // poll ignores it
      if (texts[i]->size() > kMost) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& argv) {
  try {
    SpawnOptions options;
    options.argv = argv;
    Process child = Process::spawn(options);
    child.close_input();
    std::string text;
    if (!read_all(child, text)) {
      child.kill_group(SIGKILL);
      child.wait();
      return std::nullopt;
    }
    const ExitStatus status = child.wait();
    if (status.signalled || status.code != 0) return std::nullopt;
    return text;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace syslab::cli
