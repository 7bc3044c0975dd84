// Checksums of what lies in files: BLAKE2b (RFC 7693) of 128 bits, by libsodium. They find damage by chance; whoever
// changes a file on purpose can change its checksum, too (against that: core/files/mac.hpp).
//
//   Checksum checksum;
//   checksum.update(bytes);  // in pieces of any size
//   checksum.hex();          // 32 digits
#pragma once

#include <sodium/crypto_generichash_blake2b.h>

#include <cstddef>
#include <span>
#include <string>

namespace syslab {

class Checksum {
 public:
  static constexpr std::size_t kHexDigits = 32;

  Checksum();
  void update(std::span<const std::byte> bytes);
  std::string hex();  // the object must not be used afterwards

 private:
  crypto_generichash_blake2b_state state_;
};

}  // namespace syslab
