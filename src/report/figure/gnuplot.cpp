#include "report/figure/gnuplot.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/error.hpp"
#include "core/process/process.hpp"
#include "core/text/text.hpp"

namespace syslab::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::size_t kMostOutput = 64 * 1024;  // of its output; the rest is read and dropped

// Length of the UTF-8 character that begins there, 0 if none does (overlong forms and surrogates are none).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 && lead <= 0xF4  ? 4
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                                                           : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) >= 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

// Reads what is available; false at the end of the pipe.
bool drain(int fd, std::string& said) {
  std::array<char, 4096> buffer{};
  const ssize_t n = ::read(fd, buffer.data(), buffer.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (said.size() < kMostOutput) said.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0;
}

// The first line with a message; before it, gnuplot points at the error with a caret.
std::string complaint(const std::string& said) {
  std::string found;
  for (const std::string& line : split(said, '\n')) {
    const std::string text = trim(line);
    if (text.empty() || text == "^") continue;
    // "/path/of/the/script" line 12: what is wrong
    if (const std::size_t at = text.find("line "); at != std::string::npos) return text.substr(at);
    if (found.empty()) found = text;
  }
  return found;
}

// Reads gnuplot's output until it has ended. False if it had not ended at the deadline.
bool listen(Process& process, std::string& said, std::chrono::steady_clock::time_point deadline) {
  constexpr int kPatienceMs = 50;  // between looks at a process that closed its outputs
  bool output_open = true, error_open = true;
  std::string ignored;
  while (output_open || error_open || !process.poll()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> fds{
        {{output_open ? process.from_child() : -1, POLLIN, 0}, {error_open ? process.error_output() : -1, POLLIN, 0}}};
    const bool open = output_open || error_open;
    const int ready = ::poll(fds.data(), fds.size(), open ? static_cast<int>(left) : kPatienceMs);
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (fds[0].revents != 0) output_open = drain(process.from_child(), ignored);
    if (fds[1].revents != 0) error_open = drain(process.error_output(), said);
  }
  return true;
}

}  // namespace

std::string gnuplot_string(std::string_view text) {
  std::string quoted = "'";
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const unsigned char first = static_cast<unsigned char>(text.front());
    if (length == 0) {
      quoted += kReplacement;
    } else if (first == '\n' || first == '\r' || first == '\t') {
      quoted += ' ';
    } else if (first < 0x20 || first == 0x7F) {
      quoted += kReplacement;
    } else if (first == '\'') {
      quoted += "''";
    } else {
      quoted += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + "'";
}

std::string run_gnuplot(const std::string& program, const std::filesystem::path& script,
                        std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  SpawnOptions options;
  options.argv = {program, "-d", script.string()};
  // Numbers with a point, and none of the user's own settings.
  options.environment = {{"LC_ALL", "C.UTF-8"}, {"GNUTERM", "unknown"}, {"GNUPLOT_LIB", ""}};
  try {
    Process process = Process::spawn(options);
    process.close_input();
    std::string said;
    if (!listen(process, said, deadline)) {
      return fmt::format("gnuplot took longer than {} ms and was ended", timeout.count());
    }
    const ExitStatus status = process.wait();
    if (!status.signalled && status.code == 0) return {};
    const std::string why = complaint(said);
    return fmt::format("gnuplot ended with {}{}", status.describe(), why.empty() ? "" : ": " + why);
  } catch (const Error& error) {
    return fmt::format("gnuplot did not start ({}); with the package gnuplot-nox there are pictures", error.what());
  }
}

}  // namespace syslab::report
