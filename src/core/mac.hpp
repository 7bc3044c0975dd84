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

// Of the parts in a row. Where they end is not part of it: the caller sees to it that only one cut is possible.
Mac mac_of(const Key& key, std::initializer_list<std::string_view> parts);
// In a time that does not tell where they differ; false where `received` is of another length.
bool same(const Mac& mac, std::string_view received);

// For other purposes than the key's own: whoever knows one derived key knows neither the key nor another one.
Key derived(const Key& key, std::string_view purpose);

Key random_key();  // of the system's random numbers; also for nonces

std::string_view bytes_of(const std::array<std::uint8_t, 32>& bytes);

}  // namespace syslab
