// Frames on a pipe: four bytes of length (little endian), then that many bytes of UTF-8 JSON, an object. The format of
// the worker protocol (docs/worker-protocol.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.hpp"

namespace syslab {

// Longer frames are an error on both sides: a stray print on stdout must not read as a length of 1.8 GB.
inline constexpr std::uint32_t kMaxFrameBytes = 64U << 20;

// A message nests objects and lists at most this deep: writing it, or a database's reading it, takes stack by the
// level.
inline constexpr int kMostLevels = 100;
bool is_nested_deeper(const Json& json, int levels);

// Writes one frame whole, waiting as needed. Throws Error(comm) if the other end is gone. Bytes that are no UTF-8 (a
// user's message) become U+FFFD.
void write_frame(int fd, const Json& message);

// Collects bytes as they come and gives frames as they are complete.
class FrameReader {
 public:
  explicit FrameReader(int fd) : fd_(fd) {}

  enum class State { frame, timeout, end };
  struct Result {
    State state = State::end;
    std::string text;  // of a frame
  };
  // Waits until a frame is complete, `timeout` has passed, or the other end closed. Throws Error(comm) when the bytes
  // are no frame (a length beyond kMaxFrameBytes, or a body that is no object), quoting the first of them as text: did
  // the worker print to its standard output?
  Result read(std::optional<std::chrono::milliseconds> timeout);

  // Bytes of an unfinished frame, after State::end: half a record.
  std::size_t pending_bytes() const { return buffer_.size(); }

 private:
  std::optional<std::string> take();

  int fd_;
  std::string buffer_;
};

// The last bytes of a child's free text (its standard error), kept for the message that explains its death.
class TailReader {
 public:
  explicit TailReader(int fd, std::size_t keep_bytes = 8192) : fd_(fd), keep_(keep_bytes) {}

  // Reads what is there without waiting; false once the other end closed.
  bool drain();
  const std::string& text() const { return text_; }
  // The last `count` lines that are not blank, joined by newlines.
  std::string last_lines(std::size_t count) const;

 private:
  int fd_;
  std::size_t keep_;
  std::string text_;
};

}  // namespace syslab
