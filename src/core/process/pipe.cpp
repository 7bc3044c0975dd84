#include "core/process/pipe.hpp"
#include "core/text/json_text.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/error.hpp"

namespace syslab {
namespace {

constexpr std::size_t kHeaderBytes = 4;

// A write to a closed pipe raises SIGPIPE, which would end the process before EPIPE can be reported. Held back for this
// thread during the write and, if it came, taken away again; the program's own handling of the signal stays as it was.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() {
    if (!was_pending_) {
      const struct timespec now {};
      while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

void write_all(int fd, std::string_view bytes) {
  const WithoutSigpipe guard;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      struct pollfd wait {
        fd, POLLOUT, 0
      };
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      throw_errno(ErrorKind::comm, "write to the other process", errno, "write");
    }
  }
}

std::uint32_t length_of(std::string_view header) {
  std::uint32_t length = 0;
  for (std::size_t i = kHeaderBytes; i-- > 0;) length = (length << 8) | static_cast<unsigned char>(header[i]);
  return length;
}

std::string quote_bytes(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes.substr(0, 80)) {
    const bool printable = byte >= ' ' && byte < 0x7f;
    text += printable      ? std::string(1, byte)
            : byte == '\n' ? std::string("\\n")
                           : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return bytes.size() > 80 ? text + "…" : text;
}

}  // namespace

void write_frame(int fd, const Json& message) {
  const std::string body = repaired_json_text(message);
  if (body.size() > kMaxFrameBytes) {
    throw Error(ErrorKind::comm, fmt::format("a message of {} bytes is longer than the {} that a frame may hold",
                                             body.size(), kMaxFrameBytes));
  }
  std::string frame;
  frame.reserve(kHeaderBytes + body.size());
  for (std::size_t i = 0; i < kHeaderBytes; ++i) frame += static_cast<char>((body.size() >> (8 * i)) & 0xff);
  frame += body;
  write_all(fd, frame);
}

// A complete frame from the front of the buffer. The first byte of the body is judged as soon as it is there: of stray
// text that happens to read as a small length, waiting for the rest would last for ever.
std::optional<std::string> FrameReader::take() {
  if (buffer_.size() < kHeaderBytes) return std::nullopt;
  const std::uint32_t length = length_of(buffer_);
  const bool starts_wrong = buffer_.size() > kHeaderBytes && buffer_[kHeaderBytes] != '{';
  if (length > kMaxFrameBytes || length < 2 || starts_wrong) {
    throw Error(
        ErrorKind::comm,
        fmt::format("expected a frame of the worker's wire format, found \"{}\" (did the worker print to its standard "
                    "output? Standard error is free for text)",
                    quote_bytes(buffer_)));
  }
  if (buffer_.size() < kHeaderBytes + length) return std::nullopt;
  std::string body = buffer_.substr(kHeaderBytes, length);
  buffer_.erase(0, kHeaderBytes + length);
  return body;
}

FrameReader::Result FrameReader::read(std::optional<std::chrono::milliseconds> timeout) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = timeout ? std::optional(Clock::now() + *timeout) : std::nullopt;
  std::array<char, 65536> chunk;
  while (true) {
    if (std::optional<std::string> frame = take()) return {State::frame, std::move(*frame)};
    int wait_ms = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
    }
    struct pollfd wait {
      fd_, POLLIN, 0
    };
    const int ready = ::poll(&wait, 1, wait_ms);
    if (ready < 0 && errno != EINTR) throw_errno(ErrorKind::comm, "wait for the other process", errno, "poll");
    if (ready == 0) return {State::timeout, {}};
    if (ready < 0) continue;
    const ssize_t got = ::read(fd_, chunk.data(), chunk.size());
    if (got == 0) return {State::end, {}};
    if (got > 0) {
      buffer_.append(chunk.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR && errno != EAGAIN) {
      throw_errno(ErrorKind::comm, "read from the other process", errno, "read");
    }
  }
}

bool TailReader::drain() {
  std::array<char, 4096> chunk;
  // At most four pipes full: a child that prints without end must not keep us from looking at the clock.
  for (int chunks = 0; chunks < 64; ++chunks) {
    struct pollfd wait {
      fd_, POLLIN, 0
    };
    const int ready = ::poll(&wait, 1, 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return true;
    const ssize_t got = ::read(fd_, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    text_.append(chunk.data(), static_cast<std::size_t>(got));
    if (text_.size() > 2 * keep_) text_.erase(0, text_.size() - keep_);
  }
  return true;
}

std::string TailReader::last_lines(std::size_t count) const {
  std::vector<std::string> kept;
  std::istringstream lines(text_);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) kept.push_back(line);
  }
  std::string joined;
  for (std::size_t i = kept.size() > count ? kept.size() - count : 0; i < kept.size(); ++i) {
    if (!joined.empty()) joined += '\n';
    joined += kept[i];
  }
  return joined;
}

}  // namespace syslab
