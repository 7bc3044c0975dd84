#include "train/byte_tokeniser.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace syslab::train {

std::vector<std::int64_t> encode_bytes(std::string_view text) {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  for (const char letter : text) ids.push_back(static_cast<unsigned char>(letter));
  return ids;
}

std::string decode_bytes(std::span<const std::int64_t> ids) {
  std::string text;
  text.reserve(ids.size());
  for (std::size_t at = 0; at < ids.size(); ++at) {
    if (ids[at] < 0 || ids[at] >= kByteVocab) {
      throw Error(ErrorKind::usage,
                  fmt::format("token {} at position {} is no byte: a byte-level tokeniser has 256", ids[at], at));
    }
    text += static_cast<char>(static_cast<unsigned char>(ids[at]));
  }
  return text;
}

}  // namespace syslab::train
