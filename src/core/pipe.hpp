// Frames on a pipe: four bytes of length (little endian), then that many bytes of UTF-8 JSON. The format of the worker
// protocol (docs/worker-protocol.md).
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

// Writes one frame whole, waiting as needed. Throws Error(comm) if the other end is gone.
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
  // Waits until a frame is complete, `timeout` has passed, or the other end closed. Throws Error(comm) on a length
  // beyond kMaxFrameBytes, naming the first bytes as text ("did the worker print to its standard output?").
  Result read(std::optional<std::chrono::milliseconds> timeout);

  // Bytes of an unfinished frame, after State::end: half a record.
  std::size_t pending_bytes() const { return buffer_.size(); }

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace syslab
