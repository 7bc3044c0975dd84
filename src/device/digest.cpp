#include "device/digest.hpp"

#include <fmt/format.h>

#include <cstring>

#include "device/buffer.hpp"
#include "device/cuda/kernels.hpp"
#include "device/cuda/launch.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"

namespace syslab::device {

std::string to_string(const Digest& digest) {
  return fmt::format("{:016x}{:016x}:{}", digest.sums[0], digest.sums[1], digest.bytes);
}

Digest digest(const void* data, std::size_t bytes, Stream stream) {
  Digest found{.bytes = bytes};
  if (stream.kind == Kind::cuda) {
    const CurrentDevice current(stream);
    const Buffer sums(sizeof found.sums, "digest", stream);
    fill_bytes(sums.data(), 0, sums.bytes(), stream);
    kernels::add_digest(data, bytes, sums.as<std::uint64_t>(), stream);
    copy_now(found.sums, sums.data(), sizeof found.sums, stream);
    return found;
  }
  synchronize(stream);
  const auto* at = static_cast<const std::byte*>(data);
  std::uint64_t word = 0, index = 0;
  for (; bytes >= sizeof word; bytes -= sizeof word, at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    add_word(word, index++, found.sums);
  }
  if (bytes > 0) {
    word = 0;
    std::memcpy(&word, at, bytes);
    add_word(word, index, found.sums);
  }
  return found;
}

}  // namespace syslab::device
