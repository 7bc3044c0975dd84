#include "core/files/mac.hpp"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>
#include <sys/random.h>

#include <cerrno>

#include "core/error.hpp"

namespace syslab {

Mac mac_of(const Key& key, std::initializer_list<std::string_view> parts) {
  static_assert(sizeof(Mac) == crypto_auth_hmacsha256_BYTES);
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key.data(), key.size());
  for (const std::string_view part : parts) {
    crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
  }
  Mac mac;
  crypto_auth_hmacsha256_final(&state, mac.data());
  return mac;
}

bool same(const Mac& mac, std::string_view received) {
  return received.size() == mac.size() && ::sodium_memcmp(mac.data(), received.data(), mac.size()) == 0;
}

Key derived(const Key& key, std::string_view purpose) { return mac_of(key, {purpose}); }

Key random_key() {
  Key key;
  while (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {  // so few bytes come whole
    if (errno != EINTR) throw_errno(ErrorKind::internal, "draw a random key", errno, "getrandom");
  }
  return key;
}

std::string_view bytes_of(const std::array<std::uint8_t, 32>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace syslab
