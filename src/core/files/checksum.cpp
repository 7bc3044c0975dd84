#include "core/files/checksum.hpp"

#include <sodium/core.h>
#include <sodium/utils.h>

#include <array>

namespace syslab {
namespace {

constexpr std::size_t kBytes = Checksum::kHexDigits / 2;
static_assert(kBytes >= crypto_generichash_blake2b_BYTES_MIN);

}  // namespace

Checksum::Checksum() {
  [[maybe_unused]] static const int once = ::sodium_init();  // chooses the code for this processor, which is faster
  crypto_generichash_blake2b_init(&state_, nullptr, 0, kBytes);
}

void Checksum::update(std::span<const std::byte> bytes) {
  crypto_generichash_blake2b_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::string Checksum::hex() {
  std::array<unsigned char, kBytes> digest{};
  crypto_generichash_blake2b_final(&state_, digest.data(), digest.size());
  std::array<char, 2 * kBytes + 1> text{};
  ::sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  return text.data();
}

}  // namespace syslab
