// The tokeniser that needs no training: a byte is a token. Any text, in any language, becomes ids below 256.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syslab::train {

inline constexpr std::int64_t kByteVocab = 256;

std::vector<std::int64_t> encode_bytes(std::string_view text);
// Error(usage) naming the position and the id of one that is no byte.
std::string decode_bytes(std::span<const std::int64_t> ids);

}  // namespace syslab::train
