// Inputs for readers of large formats, where bytes at random are refused at once: a good file, and what the fuzzer
// changes in it. Its input is the length to cut the file to (three bytes, 0: whole), then patches: an offset (three
// bytes), a length (one) and so many bytes.
#pragma once

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/fuzz.hpp"

namespace syslab::fuzz {

// Takes bytes off the front; zeros behind the end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  std::size_t number(int bytes) {
    std::size_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

inline std::string patched(std::string bytes, const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  if (const std::size_t length = input.number(3); length > 0 && length < bytes.size()) bytes.resize(length);
  while (!input.empty()) {
    const std::size_t at = input.number(3) % bytes.size(), count = input.number(1);
    for (std::size_t i = at; i < at + count && i < bytes.size(); ++i) bytes[i] = static_cast<char>(input.byte());
  }
  return bytes;
}

// The bytes of a file that `write` makes at a path.
template <typename Write>
std::string made_by(Write write) {
  const InputFile file(nullptr, 0, ".good");
  unlink(file.path().c_str());
  write(file.path());
  std::ifstream in(file.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace syslab::fuzz
