#include "core/files/hash.hpp"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "core/error.hpp"

namespace syslab {

std::string hex_of(std::span<const std::uint8_t> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  return text;
}

Sha256::Sha256() { crypto_hash_sha256_init(&state_); }

void Sha256::update(std::span<const std::byte> bytes) {
  crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

void Sha256::update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }

std::array<std::uint8_t, 32> Sha256::finish() {
  std::array<std::uint8_t, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256_final(&state_, digest.data());
  return digest;
}

std::string sha256_hex(std::string_view text) {
  Sha256 sha;
  sha.update(text);
  return hex_of(sha.finish());
}

std::string sha256_hex_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1 << 16);
  Sha256 sha;
  while (file && file.peek() != std::ifstream::traits_type::eof()) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    sha.update(std::string_view(buffer.data(), static_cast<std::size_t>(file.gcount())));
  }
  // A folder opens but does not read; both must not pass for an empty file.
  if (!file.eof() || file.bad()) {
    throw Error(ErrorKind::usage, fmt::format("cannot read '{}': no such file, or not readable", path.string()));
  }
  return hex_of(sha.finish());
}

}  // namespace syslab
