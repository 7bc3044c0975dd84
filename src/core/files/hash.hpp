// SHA-256 (FIPS 180-4): identities of shared facts, digests of artifacts and of users' implementations.
#pragma once

#include <sodium/crypto_hash_sha256.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace syslab {

class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  std::array<std::uint8_t, 32> finish();  // the object must not be used afterwards

 private:
  crypto_hash_sha256_state state_;
};

std::string hex_of(std::span<const std::uint8_t> bytes);  // "00ff"
std::string sha256_hex(std::string_view text);
std::string sha256_hex_of_file(const std::filesystem::path& path);  // Error(usage) if unreadable

}  // namespace syslab
