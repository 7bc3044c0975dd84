#include "cli/capture.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/error.hpp"
#include "core/process.hpp"

namespace syslab::cli {

std::optional<std::string> output_of(const std::vector<std::string>& argv) {
  try {
    SpawnOptions options;
    options.argv = argv;
    Process child = Process::spawn(options);
    child.close_input();
    std::string text;
    std::array<char, 4096> buffer;
    while (true) {
      const ssize_t count = ::read(child.from_child(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    const ExitStatus status = child.wait();
    if (status.signalled || status.code != 0) return std::nullopt;
    return text;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace syslab::cli
