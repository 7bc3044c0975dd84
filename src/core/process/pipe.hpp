// Frames on a pipe: four bytes of length (little endian), then that many bytes of UTF-8 JSON, an object. The format of
// the worker's wire format (docs/worker-wire.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/text/json.hpp"

namespace syslab {

// Longer frames are an error on both sides: a stray print on stdout must not read as a length of 1.8 GB.
inline constexpr std::uint32_t kMaxFrameBytes = 64U << 20;

// Writes one frame whole, waiting as needed. Throws Error(comm) if the other end is gone. Invalid UTF-8 (in a user's
// message) becomes U+FFFD.
void write_frame(int fd, const Json& message);

// Collects bytes as they arrive and returns frames once complete.
class FrameReader {
 public:
  explicit FrameReader(int fd) : fd_(fd) {}

  enum class State { frame, timeout, end };
  struct Result {
    State state = State::end;
    std::string text;  // of a frame
  };
  // Waits until a frame is complete, `timeout` has passed, or the other end closed. Throws Error(comm) when the bytes
  // are not a frame (a length beyond kMaxFrameBytes, or a body that is not an object), quoting the first bytes as text:
  // the worker may have printed to its standard output.
  Result read(std::optional<std::chrono::milliseconds> timeout);

  // Bytes of an unfinished frame, after State::end: half a record.
  std::size_t pending_bytes() const { return buffer_.size(); }

 private:
  std::optional<std::string> take();

  int fd_;
  std::string buffer_;
};

// Keeps the end of a child's standard error for the message that explains its death.
class TailReader {
 public:
  explicit TailReader(int fd, std::size_t keep_bytes = 8192) : fd_(fd), keep_(keep_bytes) {}

  // Reads what is available without waiting; false once the other end has closed.
  bool drain();
  const std::string& text() const { return text_; }
  // The last `count` non-blank lines, joined by newlines.
  std::string last_lines(std::size_t count) const;

 private:
  int fd_;
  std::size_t keep_;
  std::string text_;
};

}  // namespace syslab
