// Message authentication: HMAC-SHA-256 (RFC 2104, FIPS 198-1), by libsodium.
//
//   const Mac mac = mac_of(key, {"launch", nonce});
//   if (!same(mac, received)) …
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace syslab {

using Key = std::array<std::uint8_t, 32>;
using Mac = std::array<std::uint8_t, 32>;

// Authenticates the concatenated parts. Their boundaries are not included: the caller ensures that only one split is
// possible.
Mac mac_of(const Key& key, std::initializer_list<std::string_view> parts);
// Constant-time comparison; false if `received` has another length.
bool same(const Mac& mac, std::string_view received);

// A key for another purpose: knowing one derived key reveals neither the key nor any other derived key.
Key derived(const Key& key, std::string_view purpose);

Key random_key();  // from the system's random numbers; also for nonces

std::string_view bytes_of(const std::array<std::uint8_t, 32>& bytes);

}  // namespace syslab
