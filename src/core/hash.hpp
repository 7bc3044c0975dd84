// SHA-256 (FIPS 180-4): identities of shared facts, digests of artifacts and of users' implementations.
#pragma once

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
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  std::array<std::uint8_t, 32> finish();  // the object must not be used afterwards

 private:
  void block(const std::uint8_t* data);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> pending_{};
  std::uint64_t total_bytes_ = 0;
};

std::string hex_of(std::span<const std::uint8_t> bytes);  // "00ff"
std::string sha256_hex(std::string_view text);
std::string sha256_hex_of_file(const std::filesystem::path& path);  // Error(usage) if unreadable

}  // namespace syslab
